#include "interposer/optional_entries.h"

#include <string.h>
#include <sys/mman.h>

#include "interposer/aligned_new.h"
#include "interposer/early_text.h"
#include "interposer/elf_lookup.h"
#include "interposer/raw_syscall.h"
#include "interposer/real_allocator.h"
#include "interposer/symbol_slots.h"
#include "interposer/thread_state.h"

// The rows that hooks_optional.cc defines, side by side (the linker gives a section's bounds these names). Weak: unit
// tests link the recorder without hooks.
extern "C" {
extern cadastre::OptionalEntry __start_cadastre_entries[] __attribute__((weak, visibility("hidden")));
extern cadastre::OptionalEntry __stop_cadastre_entries[] __attribute__((weak, visibility("hidden")));
}

namespace cadastre {
namespace {

constexpr size_t kMaxEntries = 256;
alignas(4096) Redirection redirections[kMaxEntries];
// All that are awake lie between these; most programs have one, cfree.
OptionalEntry *first_awake, *end_awake;

bool IsOperator(const OptionalEntry& entry) { return TextStartsWith(entry.name, "_Z"); }

const link_map* LibraryOfFamily(EntryFamily family) {
  switch (family) {
    case EntryFamily::kProvider:
      return RealAllocatorLibrary();
    case EntryFamily::kJe:
      return NextLibraryWith("je_malloc");
    case EntryFamily::kTc:
      return NextLibraryWith("tc_malloc");
    case EntryFamily::kMi:
      return NextLibraryWith("mi_malloc");
    case EntryFamily::kLibc:
      break;  // is never woken
  }
  return nullptr;
}

// Most names belong to allocators that are not there: the one library that could have them is asked before all others.
bool MayWake(const OptionalEntry& entry, const link_map* library) {
  if (LibraryDefines(library, entry.name)) return true;
  const bool is_new = IsOperator(entry) && entry.shape.action == EntryAction::kAllocate;  // libstdc++'s: aligned_new.h
  return entry.family == EntryFamily::kProvider && (is_new || TextEquals(entry.name, "cfree"));
}

// What programs would find if we were not there, as long as it belongs to the family; nullptr: the entry stays asleep.
void* FindReal(OptionalEntry* entry, const link_map* library) {
  const link_map* first = NextLibraryWith(entry->name);
  if (first == nullptr || AnyLibraryWith(entry->name) != first) return nullptr;  // the executable's own stays its own
  void* found = FindInLibrary(first, entry->name);
  entry->stands_before = found;
  if (first == library) return found;
  return entry->family == EntryFamily::kProvider ? AlignedNewInsteadOf(entry->name, first, found) : nullptr;
}

// glibc keeps cfree for binaries that were linked before 2.26: they ask for it with the version of that time, and
// nobody else finds it. So does ours.
void* FindForOldBinaries(OptionalEntry* entry, const link_map* library, Elf64_Versym* version) {
  if (!TextEquals(entry->name, "cfree")) return nullptr;
  const Elf64_Versym needed = NeededVersionOf(OwnLibrary(), "GLIBC_2.2.5");
  void* found = needed != 0 ? FindHiddenInLibrary(library, entry->name) : nullptr;
  entry->stands_before = found;
  *version = needed | kHiddenVersion;
  return found;
}

// The version tables are read-only; all our own indices lie close together. They share no page with code, though a
// segment: the relocations lie between, which take several pages.
bool SetVersions(Elf64_Versym* const* indices, size_t count, const Elf64_Versym* values) {
  uint64_t begin = ~0ull, end = 0;
  for (size_t i = 0; i < count; i++) {
    const uint64_t address = reinterpret_cast<uint64_t>(indices[i]);
    if (address < begin) begin = address;
    if (address + sizeof(Elf64_Versym) > end) end = address + sizeof(Elf64_Versym);
  }
  begin &= ~4095ull;
  const long bytes = static_cast<long>(end - begin);
  if (RawSyscall(SYS_mprotect, static_cast<long>(begin), bytes, PROT_READ | PROT_WRITE) != 0) return false;
  for (size_t i = 0; i < count; i++) __atomic_store_n(indices[i], values[i], __ATOMIC_RELEASE);
  RawSyscall(SYS_mprotect, static_cast<long>(begin), bytes, PROT_READ);
  return true;
}

}  // namespace

void WakeEntries() {
  if (!RealAllocatorIsReached()) return;
  static Elf64_Versym* indices[kMaxEntries];
  static Elf64_Versym values[kMaxEntries];
  const link_map* own = OwnLibrary();
  const link_map* families[kEntryFamilies];
  for (int i = 0; i < kEntryFamilies; i++) families[i] = LibraryOfFamily(static_cast<EntryFamily>(i));

  size_t count = 0;
  for (OptionalEntry* entry = __start_cadastre_entries; entry != __stop_cadastre_entries; entry++) {
    const link_map* library = families[static_cast<int>(entry->family)];
    if (library == nullptr || count == kMaxEntries || !MayWake(*entry, library)) continue;
    Elf64_Versym* index = HiddenVersionOf(own, entry->name);
    if (index == nullptr) continue;
    Elf64_Versym version = VER_NDX_GLOBAL;
    void* real = FindReal(entry, library);
    if (real == nullptr) real = FindForOldBinaries(entry, library, &version);
    if (real == nullptr) continue;
    entry->real = reinterpret_cast<EntryFunction>(real);
    if (count == 0) first_awake = entry;
    end_awake = entry + 1;
    indices[count] = index;
    values[count] = version;
    // A library that holds an allocator and more calls operator new on its own behalf: that is to be seen.
    redirections[count] = {entry->name, entry->stands_before, entry->hook, library, !IsOperator(*entry)};
    count++;
  }
  if (count == 0) return;
  if (SetVersions(indices, count, values)) return RedirectSlots(redirections, count);
  for (OptionalEntry* entry = first_awake; entry != end_awake; entry++) entry->real = nullptr;
}

// What gives back a block of that operator new: a debugging allocator ends a program that mixes them.
const OptionalEntry* DeleteOf(const OptionalEntry& entry, bool aligned) {
  const bool array = strncmp(entry.name, "_Zna", 4) == 0;
  if (aligned) return AwakeEntry(array ? "_ZdaPvSt11align_val_t" : "_ZdlPvSt11align_val_t");
  return AwakeEntry(array ? "_ZdaPv" : "_ZdlPv");
}

void ProbeOperators() {
  static const char kNothrowTag = 0;
  const uint64_t tag = reinterpret_cast<uint64_t>(&kNothrowTag);
  constexpr uint64_t kBytes = 64, kAlignment = 64;
  ThreadState* thread = CurrentThreadState();
  for (OptionalEntry* entry = first_awake; entry != end_awake; entry++) {
    if (entry->real == nullptr || !IsOperator(*entry) || entry->shape.action != EntryAction::kAllocate) continue;
    const bool aligned = strstr(entry->name, "align_val_t") != nullptr;
    thread->countdown = 0;  // "not drawn": whatever hook is reached takes its slow path and leaves its mark
    thread->notes &= static_cast<uint8_t>(~kSawOwnWork);
    const uint64_t block = entry->real(kBytes, aligned ? kAlignment : tag, tag, 0, 0, 0);
    entry->is_counted_inside = (thread->notes & kSawOwnWork) != 0;
    if (const OptionalEntry* release = DeleteOf(*entry, aligned)) {
      release->real(block, kAlignment, 0, 0, 0, 0);
    } else {
      g_real.free(reinterpret_cast<void*>(block));
    }
  }
}

const OptionalEntry* AwakeEntry(const char* name) {
  for (const OptionalEntry* entry = first_awake; entry != end_awake; entry++) {
    if (entry->real != nullptr && TextEquals(entry->name, name)) return entry;
  }
  return nullptr;
}

}  // namespace cadastre
