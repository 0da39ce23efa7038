#include "interposer/library_map.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include <atomic>

#include "interposer/elf_lookup.h"
#include "interposer/library_image.h"
#include "interposer/process_facts.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"

namespace cadastre {
namespace {

constexpr uint32_t kPathBytes = 512 << 10;  // 4,096 libraries of 128 bytes; untouched pages cost nothing

// glibc's struct dl_find_object (bits/dl_find_object.h, 2.35), written down so that we build against older headers too.
struct LoadedObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};
using FindObjectFunction = int (*)(void*, LoadedObject*);

// Everything known about one library. Written once by the thread that claimed the slot, before `end` is published.
struct Library : LibraryImage {
  const char* path;
  uint32_t path_length;
  const link_map* map;  // compared, never followed
  uint64_t loaded_ns;   // CLOCK_MONOTONIC
};

// The index is the place in these arrays; 0 is not used. `start` claims a slot (0 = free), `end` publishes it (0 =
// being written, or retired). Together, for a process with few libraries touches one page of them.
struct Span {
  std::atomic<uint64_t> start, end;
  std::atomic<uint64_t> unloaded_ns;  // 0 = loaded or being written
};
alignas(4096) Span g_spans[kMaxLibraries];
alignas(4096) Library g_libraries[kMaxLibraries];
std::atomic<uint32_t> g_count{1};  // highest claimed index + 1

alignas(4096) char g_path_bytes[kPathBytes];
std::atomic<uint32_t> g_path_used{0};

std::atomic<uint32_t> g_generation{1};
std::atomic<uint32_t> g_closing{0};
FindObjectFunction g_find_object = nullptr;
uint64_t g_vdso_start = 0;
const char* g_executable_path = "";

uint64_t SinceStart(uint64_t monotonic_ns) {
  uint64_t start = g_profile.header->start_monotonic_ns;
  return monotonic_ns > start ? monotonic_ns - start : 1;
}

const char* KeepPath(const char* path, uint32_t length) {
  uint32_t at = g_path_used.fetch_add(length + 1, std::memory_order_relaxed);  // with its NUL
  if (at > kPathBytes || length >= kPathBytes - at) {
    g_path_used.store(kPathBytes, std::memory_order_relaxed);
    return nullptr;
  }
  memcpy(g_path_bytes + at, path, length);
  return g_path_bytes + at;
}

void AddFlags(LibraryEntry* entry) {
  auto self = reinterpret_cast<uint64_t>(&g_libraries);
  if (self >= entry->start && self < entry->end) entry->flags |= format::kLibraryIsCadastre;
  if (g_vdso_start != 0 && entry->start == g_vdso_start) entry->flags |= format::kLibraryIsVdso;
}

bool AskLoader(uint64_t pc, LoadedObject* object) {
  return g_find_object != nullptr && g_find_object(reinterpret_cast<void*>(pc), object) == 0 && object->map != nullptr;
}

// The ELF header of a loaded object, or nullptr. Where a library has holes between its segments, the loader's "mapping"
// is one segment only: then the header is looked for at the load address.
const ElfW(Ehdr) * FindElfHeader(const LoadedObject& object) {
  LoadedObject first = object;
  for (int attempt = 0; attempt < 2; attempt++) {
    auto* elf = static_cast<const ElfW(Ehdr)*>(first.map_start);
    auto start = reinterpret_cast<uint64_t>(first.map_start), end = reinterpret_cast<uint64_t>(first.map_end);
    const bool is_header = end - start >= format::kPageBytes && memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 &&
                           elf->e_phentsize == sizeof(ElfW(Phdr)) && elf->e_phoff < format::kPageBytes &&
                           elf->e_phoff + elf->e_phnum * sizeof(ElfW(Phdr)) <= format::kPageBytes;
    if (is_header) return elf;
    if (!AskLoader(object.map->l_addr, &first) || first.map != object.map) return nullptr;
  }
  return nullptr;
}

bool ReadLoadedObject(const LoadedObject& object, Library* library) {
  const ElfW(Ehdr)* elf = FindElfHeader(object);
  if (elf != nullptr) {
    auto* headers = reinterpret_cast<const ElfW(Phdr)*>(reinterpret_cast<const char*>(elf) + elf->e_phoff);
    ReadProgramHeaders(object.map->l_addr, headers, elf->e_phnum, library);
    AddFlags(&library->entry);
  } else {  // its range and name all the same
    library->entry.bias = object.map->l_addr;
    library->entry.start = reinterpret_cast<uint64_t>(object.map_start);
    library->entry.end = reinterpret_cast<uint64_t>(object.map_end);
  }
  library->map = object.map;
  library->path = object.map->l_name;
  library->path_length = object.map->l_name ? static_cast<uint32_t>(strlen(object.map->l_name)) : 0;
  return library->entry.end > library->entry.start;
}

bool IsSameLibrary(const Library& a, const Library& b) {
  return a.entry.bias == b.entry.bias && a.entry.start == b.entry.start && a.entry.end == b.entry.end &&
         a.entry.eh_frame_hdr == b.entry.eh_frame_hdr && a.build_id_length == b.build_id_length &&
         memcmp(a.build_id, b.build_id, kBuildIdBytes) == 0 && a.path_length == b.path_length &&
         (a.path_length == 0 || (a.path != nullptr && memcmp(a.path, b.path, a.path_length) == 0));
}

void WriteRecord(uint32_t index) {
  if (!ProfileIsOpen()) return;
  if (index >= g_profile.library_capacity ||
      !ProfileEnsure(&g_profile.libraries[index], sizeof(format::LibraryRecord))) {
    __atomic_fetch_add(&g_profile.header->counters.libraries_full, 1, __ATOMIC_RELAXED);
    return;
  }
  format::LibraryRecord* record = &g_profile.libraries[index];
  const Library& library = g_libraries[index];
  uint32_t expected = format::kFree;
  if (!__atomic_compare_exchange_n(&record->state, &expected, format::kWriting, false, __ATOMIC_ACQUIRE,
                                   __ATOMIC_RELAXED)) {
    return;  // another thread has written it, or is at it
  }
  record->path = library.path_length != 0 ? ProfileAddString(library.path, library.path_length) : 0;
  record->bias = library.entry.bias;
  record->start = library.entry.start;
  record->end = library.entry.end;
  record->loaded_ns = SinceStart(library.loaded_ns);
  record->build_id_length = library.build_id_length;
  record->flags = library.entry.flags;
  memcpy(record->build_id, library.build_id, kBuildIdBytes);
  uint64_t unloaded = g_spans[index].unloaded_ns.load(std::memory_order_acquire);
  __atomic_store_n(&record->unloaded_ns, unloaded == 0 ? 0 : SinceStart(unloaded), __ATOMIC_RELAXED);
  __atomic_store_n(&record->state, format::kReady, __ATOMIC_RELEASE);
}

// Retired or back again: the one field of a written record that changes.
void WriteUnloaded(uint32_t index, uint64_t unloaded) {
  if (!ProfileIsOpen() || index >= g_profile.library_capacity) return;
  format::LibraryRecord* record = &g_profile.libraries[index];
  if (!ProfileEnsure(record, sizeof(*record))) return;
  if (__atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == format::kFree) return;  // WriteRecord will read unloaded_ns
  __atomic_store_n(&record->unloaded_ns, unloaded == 0 ? 0 : SinceStart(unloaded), __ATOMIC_RELAXED);
}

void Retire(uint32_t index) {
  if (g_spans[index].end.exchange(0, std::memory_order_acq_rel) == 0) return;
  uint64_t now = MonotonicNow();
  g_spans[index].unloaded_ns.store(now, std::memory_order_release);
  g_generation.fetch_add(1, std::memory_order_acq_rel);
  WriteUnloaded(index, now);
}

// Finds or makes the slot of `library` and returns its index, 0 if the table is full. The claim itself publishes the
// key, so a thread that loses the race knows the index at once and waits for nothing: it has read the same facts for
// itself.
uint32_t AddLibrary(Library* library) {
  const uint64_t start = library->entry.start;
  for (uint32_t index = 1; index < kMaxLibraries; index++) {
    uint64_t claimed = g_spans[index].start.load(std::memory_order_acquire);
    if (claimed == 0 && g_spans[index].start.compare_exchange_strong(claimed, start, std::memory_order_acq_rel)) {
      library->entry.index = index;
      uint32_t count = g_count.load(std::memory_order_relaxed);
      while (count <= index && !g_count.compare_exchange_weak(count, index + 1, std::memory_order_acq_rel)) {
      }
      library->path = KeepPath(library->path, library->path_length);
      if (library->path == nullptr) library->path_length = 0;
      library->loaded_ns = MonotonicNow();
      g_libraries[index] = *library;
      g_spans[index].end.store(library->entry.end, std::memory_order_release);
      WriteRecord(index);
      return index;
    }
    if (claimed != start) continue;
    if (g_spans[index].end.load(std::memory_order_acquire) == 0 &&
        g_spans[index].unloaded_ns.load(std::memory_order_acquire) == 0) {
      library->entry.index = index;  // being written by another thread at this moment
      return index;
    }
    if (!IsSameLibrary(g_libraries[index], *library)) continue;
    library->entry.index = index;
    if (g_spans[index].end.load(std::memory_order_acquire) == 0) {  // it was unloaded and has come back
      g_libraries[index].map = library->map;
      g_spans[index].unloaded_ns.store(0, std::memory_order_release);
      g_spans[index].end.store(library->entry.end, std::memory_order_release);
      WriteUnloaded(index, 0);
    }
    return index;
  }
  if (ProfileIsOpen()) __atomic_fetch_add(&g_profile.header->counters.libraries_full, 1, __ATOMIC_RELAXED);
  return 0;
}

bool IsWhereLoaderSays(const Library& library, const LoadedObject& object) {
  return library.map == object.map && reinterpret_cast<uint64_t>(object.map_start) >= library.entry.start &&
         reinterpret_cast<uint64_t>(object.map_end) <= library.entry.end &&
         (object.eh_frame == nullptr || library.entry.eh_frame_hdr == object.eh_frame);
}

// Two builds of one plug-in, opened in turn, may agree in everything that the loader says, the link map's address
// included: so the name and the build id in memory are compared too.
// Only for a library that cannot go meanwhile: one in which a function of this thread's stack lies.
bool IsWhatLoaderSays(const Library& library, const LoadedObject& object) {
  if (!IsWhereLoaderSays(library, object)) return false;
  // The loader calls the executable "", and we call the vDSO so: an empty name says nothing.
  const bool both_named =
      library.path != nullptr && library.path[0] != 0 && object.map->l_name != nullptr && object.map->l_name[0] != 0;
  if (both_named && strcmp(library.path, object.map->l_name) != 0) return false;
  return library.build_id_length == 0 || memcmp(library.build_id, library.build_id_at, library.build_id_length) == 0;
}

struct Visitor {
  bool at_start;
  bool seen[kMaxLibraries];  // by index, when asking who is still there
};

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto* visitor = static_cast<Visitor*>(data);
  Library library = {};
  ReadProgramHeaders(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, &library);
  AddFlags(&library.entry);
  if (library.entry.end == 0) return 0;
  LoadedObject object;
  if (AskLoader(library.entry.start, &object)) library.map = object.map;
  const char* name = info->dlpi_name != nullptr ? info->dlpi_name : "";
  // The first object of the first visit; a later visit must give it the same name, or it would be taken for another
  // library.
  const bool is_executable = (visitor->at_start && g_count.load(std::memory_order_relaxed) == 1) ||
                             ((g_libraries[1].entry.flags & format::kLibraryIsExecutable) != 0 &&
                              library.entry.start == g_libraries[1].entry.start);
  if (is_executable) {
    library.entry.flags |= format::kLibraryIsExecutable;
    if (name[0] == 0) name = g_executable_path;
  }
  if (library.entry.flags & format::kLibraryIsVdso) name = "";
  library.path = name;
  library.path_length = static_cast<uint32_t>(strlen(name));
  library.entry.permanent = visitor->at_start;
  uint32_t index = AddLibrary(&library);
  if (index != 0) visitor->seen[index] = true;
  return 0;
}

Visitor g_visitor;  // too large for a stack; Init and the callers below are serialised by g_visiting
std::atomic<bool> g_visiting{false};

// Without _dl_find_object: what has been opened and what has gone since.
void Refresh() {
  if (g_visiting.exchange(true, std::memory_order_acquire)) return;  // somebody else is at it
  memset(&g_visitor, 0, sizeof(g_visitor));
  const uint32_t count = g_count.load(std::memory_order_acquire);
  dl_iterate_phdr(Visit, &g_visitor);
  for (uint32_t index = 1; index < count; index++) {
    if (!g_libraries[index].entry.permanent && !g_visitor.seen[index]) Retire(index);
  }
  g_visiting.store(false, std::memory_order_release);
}

}  // namespace

void LibraryMapInit(const char* executable_path) {
  g_find_object = reinterpret_cast<FindObjectFunction>(FindLoadedFunction("_dl_find_object"));
  g_vdso_start = getauxval(AT_SYSINFO_EHDR);
  g_executable_path = executable_path;
  g_visiting.store(true, std::memory_order_relaxed);
  g_visitor.at_start = true;
  dl_iterate_phdr(Visit, &g_visitor);
  g_visiting.store(false, std::memory_order_release);
}

void LibraryMapBeforeDlclose() { g_closing.fetch_add(1, std::memory_order_acq_rel); }

void LibraryMapAfterDlclose() {
  const uint32_t count = g_count.load(std::memory_order_acquire);
  if (g_find_object == nullptr) {
    Refresh();
  } else {
    // Asked one by one and not by dl_iterate_phdr, which knows only the libraries of the caller's namespace (dlmopen).
    // Nothing of theirs is touched: another thread may be unmapping any of them. One that was replaced by its like at
    // the same place is told when a stack leads through it.
    for (uint32_t index = 1; index < count; index++) {
      uint64_t end = g_spans[index].end.load(std::memory_order_acquire);
      if (end == 0 || g_libraries[index].entry.permanent) continue;
      LoadedObject object;
      if (!AskLoader(g_spans[index].start.load(std::memory_order_relaxed), &object) ||
          !IsWhereLoaderSays(g_libraries[index], object)) {
        Retire(index);
      }
    }
  }
  g_closing.fetch_sub(1, std::memory_order_acq_rel);
}

uint32_t LibraryMapGeneration() { return g_generation.load(std::memory_order_acquire); }

bool IsLibraryStillLoaded(uint32_t index, uint64_t pc) {
  if (g_spans[index].end.load(std::memory_order_acquire) == 0) return false;
  if (g_find_object == nullptr) return g_closing.load(std::memory_order_acquire) == 0;
  LoadedObject object;
  if (AskLoader(pc, &object) && IsWhatLoaderSays(g_libraries[index], object)) return true;
  Retire(index);
  return false;
}

bool LookupLibrary(uint64_t pc, LibraryEntry* entry, uint32_t confirmed) {
  // Newest first: where two entries claim one address, the younger is right.
  for (uint32_t index = g_count.load(std::memory_order_acquire) - 1; index != 0; index--) {
    uint64_t end = g_spans[index].end.load(std::memory_order_acquire);
    if (pc >= end || pc < g_spans[index].start.load(std::memory_order_relaxed)) continue;
    const bool is_certain = g_libraries[index].entry.permanent || g_find_object == nullptr || index == confirmed;
    if (!is_certain && !IsLibraryStillLoaded(index, pc)) continue;
    *entry = g_libraries[index].entry;
    return true;
  }
  LoadedObject object;
  Library library;
  memset(&library, 0, sizeof(library));
  if (!AskLoader(pc, &object) || !ReadLoadedObject(object, &library)) return false;
  if (AddLibrary(&library) == 0) return false;
  *entry = library.entry;
  return true;
}

const char* LibraryPath(uint32_t index) {
  const char* path = index != 0 && index < kMaxLibraries ? g_libraries[index].path : nullptr;
  return path != nullptr ? path : "";
}

void LibraryMapPublish() {
  const uint32_t count = g_count.load(std::memory_order_acquire);
  for (uint32_t index = 1; index < count; index++) {
    // The one that is being written at this moment sees the open profile itself.
    bool whole = g_spans[index].end.load(std::memory_order_acquire) != 0 ||
                 g_spans[index].unloaded_ns.load(std::memory_order_acquire) != 0;
    if (whole) WriteRecord(index);
  }
}

}  // namespace cadastre
