// The mapping functions: what the program maps and unmaps outside its allocator.
//
// Each hook is the call to the next definition with an event before it (something goes) or after it (something has
// come), see mapping_queue.h. An allocator's own mappings are told by their caller and are recorded without a stack:
// they hold the blocks that are counted as malloc, and what is not needed for them is the allocator's retention. glibc
// maps thread stacks, big blocks and its arenas without these functions: nothing is counted twice.
//
// madvise is left alone: it changes what is resident, not what is mapped, and the kernel is asked for that.
#include <errno.h>
#include <stdarg.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "interposer/allocator_code.h"
#include "interposer/elf_lookup.h"
#include "interposer/hooks.h"
#include "interposer/mapping_queue.h"
#include "interposer/profile_format.h"
#include "interposer/raw_syscall.h"
#include "interposer/recorder.h"
#include "interposer/session.h"
#include "interposer/thread_buffer.h"
#include "interposer/thread_state.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000  // Linux 4.17
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4  // Linux 5.7
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

namespace cadastre {
namespace {

constexpr uint64_t kPage = 4096, kDefaultHugePage = 2 << 20;

enum Function { kMmap, kMunmap, kMremap, kMprotect, kShmat, kShmdt, kBrk, kSbrk, kFunctionCount };
constexpr const char* kNames[kFunctionCount] = {"mmap",  "munmap", "mremap", "mprotect",
                                                "shmat", "shmdt",  "brk",    "sbrk"};
void* next[kFunctionCount];

// A call by number, syscall(SYS_mmap, ...), goes to the kernel, as it would without us: the next definition of mmap may
// be made of it (gperftools').
enum class Way { kByName, kByNumber };

// The definition behind ours; null before there is one, and for a call by number.
template <typename Signature>
Signature* Next(Function which, Way way) {
  if (way == Way::kByNumber) return nullptr;
  void* function = __atomic_load_n(&next[which], __ATOMIC_ACQUIRE);
  if (function == nullptr && ThreadStateOffset() != 0) {
    function = FindNextFunction(kNames[which]);
    __atomic_store_n(&next[which], function, __ATOMIC_RELEASE);
  }
  return reinterpret_cast<Signature*>(function);
}

// As libc does it.
long Returned(long result) {
  if (!IsSyscallError(result)) return result;
  if (ThreadStateOffset() != 0) errno = static_cast<int>(-result);
  return -1;
}

// Before the session is prepared an allocator maps its first pages: they wait in the queue. The profile is not touched
// here; whoever does so (RecordMapping, MappingQueueDrain) looks at the file just before.
bool IsWanted() { return SessionCurrentState() != SessionState::kOff; }

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

uint64_t MappedBytes(uint64_t length, int flags) {
  if ((flags & MAP_HUGETLB) == 0) return RoundUp(length, kPage);
  const int shift = (flags >> MAP_HUGE_SHIFT) & 63;
  return RoundUp(length, shift != 0 ? 1ull << shift : kDefaultHugePage);
}

uint32_t FlagsOf(int protection, int flags, uint64_t caller) {
  uint32_t result = static_cast<uint32_t>(protection) & format::kMappingProtection;
  const int type = flags & MAP_TYPE;  // there are private ones of other names, MAP_DROPPABLE
  if (type == MAP_SHARED || type == MAP_SHARED_VALIDATE) result |= format::kMappingShared;
  if ((flags & MAP_ANONYMOUS) == 0) result |= format::kMappingFile;
  if ((flags & MAP_NORESERVE) != 0) result |= format::kMappingNoReserve;
  if (IsAllocatorCode(caller)) result |= format::kMappingAllocator;
  return result;
}

// Would the kernel take this range apart? If not, nothing is touched, and nothing must be recorded as gone.
bool IsRange(uint64_t address, uint64_t length) {
  return length != 0 && address % kPage == 0 && address + length > address;
}

uint64_t EndOf(uint64_t start, uint64_t length) { return start + RoundUp(length, kPage); }

}  // namespace
}  // namespace cadastre

extern "C" {
__attribute__((visibility("hidden"))) void* cadastre_mmap_entry(void*, size_t, int, int, int, off_t);
__attribute__((visibility("hidden"))) void* cadastre_mmap_by_number(void*, size_t, int, int, int, off_t);
__attribute__((visibility("hidden"))) void* cadastre_mremap_by_number(void*, size_t, size_t, int, void*);
__attribute__((visibility("hidden"))) void* cadastre_shmat_by_number(int, const void*, int);
__attribute__((visibility("hidden"))) void* cadastre_mremap_entry(void*, size_t, size_t, int, void*);
__attribute__((visibility("hidden"))) void* cadastre_shmat_entry(int, const void*, int);
__attribute__((visibility("hidden"))) int cadastre_brk_entry(void*);
__attribute__((visibility("hidden"))) void* cadastre_sbrk_entry(intptr_t);
}

CADASTRE_WIDE_ENTRY(cadastre_mmap_entry, cadastre_mmap_seen);
CADASTRE_WIDE_ENTRY(cadastre_mmap_by_number, cadastre_mmap_number_seen);
CADASTRE_WIDE_ENTRY(cadastre_mremap_entry, cadastre_mremap_seen);
CADASTRE_WIDE_ENTRY(cadastre_mremap_by_number, cadastre_mremap_number_seen);
CADASTRE_WIDE_ENTRY(cadastre_shmat_entry, cadastre_shmat_seen);
CADASTRE_WIDE_ENTRY(cadastre_shmat_by_number, cadastre_shmat_number_seen);
CADASTRE_WIDE_ENTRY(cadastre_brk_entry, cadastre_brk_seen);
CADASTRE_WIDE_ENTRY(cadastre_sbrk_entry, cadastre_sbrk_seen);

CADASTRE_EXPORT void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  return cadastre_mmap_entry(address, length, protection, flags, descriptor, offset);
}
CADASTRE_EXPORT void* mmap64(void*, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

// The fifth argument is there only with MREMAP_FIXED or MREMAP_DONTUNMAP; it is passed on as it is.
CADASTRE_EXPORT void* mremap(void* address, size_t old_length, size_t length, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* target = va_arg(arguments, void*);
  va_end(arguments);
  return cadastre_mremap_entry(address, old_length, length, flags, target);
}

CADASTRE_EXPORT void* shmat(int id, const void* address, int flags) { return cadastre_shmat_entry(id, address, flags); }
CADASTRE_EXPORT int brk(void* end) { return cadastre_brk_entry(end); }
CADASTRE_EXPORT void* sbrk(intptr_t increment) { return cadastre_sbrk_entry(increment); }

namespace cadastre {
namespace {

void* Map(Way way, void* address, size_t length, int protection, int flags, int descriptor, off_t offset,
          const EntryRegisters& registers) {
  auto* real = Next<decltype(mmap)>(kMmap, way);
  auto call = [&] {
    if (real != nullptr) return real(address, length, protection, flags, descriptor, offset);
    return reinterpret_cast<void*>(Returned(RawSyscall(
        SYS_mmap, reinterpret_cast<long>(address), static_cast<long>(length), protection, flags, descriptor, offset)));
  };
  if (!IsWanted()) return call();
  const uint64_t wanted = reinterpret_cast<uint64_t>(address), bytes = MappedBytes(length, flags);
  const bool replaces = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == MAP_FIXED && IsRange(wanted, bytes);
  const uint64_t mark = replaces ? MappingPostMark(wanted, wanted + bytes) : 0;
  void* result = call();
  if (result == MAP_FAILED) {
    if (replaces) MappingPostUnmark(wanted, wanted + bytes, mark);
    return result;
  }
  const uint64_t start = reinterpret_cast<uint64_t>(result);
  RecordMapping(start, start + bytes, FlagsOf(protection, flags, registers.pc), nullptr, registers);
  return result;
}

// What was marked has gone, unless the kernel has answered with an error.
int GoneOrBack(int error, uint64_t start, uint64_t end, uint64_t mark) {
  if (error == 0) {
    MappingPostGone(start, end, mark);
  } else {
    MappingPostUnmark(start, end, mark);
  }
  return error;
}

int Unmap(Way way, void* address, size_t length) {
  auto* real = Next<decltype(munmap)>(kMunmap, way);
  auto call = [&] {
    if (real != nullptr) return real(address, length);
    return static_cast<int>(
        Returned(RawSyscall(SYS_munmap, reinterpret_cast<long>(address), static_cast<long>(length))));
  };
  const uint64_t start = reinterpret_cast<uint64_t>(address);
  if (!IsWanted() || !IsRange(start, length)) return call();
  const uint64_t end = EndOf(start, length), mark = MappingPostMark(start, end);
  return GoneOrBack(call(), start, end, mark);
}

void* Remap(Way way, void* address, size_t old_length, size_t length, int flags, void* target,
            const EntryRegisters& registers) {
  auto* real = Next<void*(void*, size_t, size_t, int, void*)>(kMremap, way);
  auto call = [&] {
    if (real != nullptr) return real(address, old_length, length, flags, target);
    return reinterpret_cast<void*>(
        Returned(RawSyscall(SYS_mremap, reinterpret_cast<long>(address), static_cast<long>(old_length),
                            static_cast<long>(length), flags, reinterpret_cast<long>(target))));
  };
  if (!IsWanted()) return call();
  // Of length 0 the old range stays and is mapped once more; so it does with MREMAP_DONTUNMAP, but empty.
  const uint64_t old_start = reinterpret_cast<uint64_t>(address), new_start = reinterpret_cast<uint64_t>(target);
  const bool moves = IsRange(old_start, old_length);
  const bool replaces = (flags & MREMAP_FIXED) != 0 && IsRange(new_start, length);
  const uint64_t old_end = EndOf(old_start, old_length), new_end = EndOf(new_start, length);
  const uint64_t mark = moves ? MappingPostMark(old_start, old_end) : 0;
  const uint64_t replaced = replaces ? MappingPostMark(new_start, new_end) : 0;
  void* result = call();
  if (result == MAP_FAILED) {
    if (replaces) MappingPostUnmark(new_start, new_end, replaced);
    if (moves) MappingPostUnmark(old_start, old_end, mark);
    return result;
  }
  const uint64_t start = reinterpret_cast<uint64_t>(result), end = EndOf(start, length);
  if (moves && start == old_start && length <= old_length) {  // shorter: what is left is as it was
    MappingPostRemove(end, old_end);
    MappingPostUnmark(old_start, end, mark);
    return result;
  }
  // Where several mappings move at once (Linux 6.17), what lies under the holes between them stays.
  if (replaces && length == old_length) MappingPostUnmark(new_start, new_end, replaced);
  const MappingMove move = {old_start, old_end, mark, (flags & MREMAP_DONTUNMAP) != 0};
  const uint32_t unknown = FlagsOf(PROT_READ | PROT_WRITE, moves ? MAP_PRIVATE : MAP_SHARED, registers.pc);
  RecordMapping(start, end, unknown, moves ? &move : nullptr, registers);
  return result;
}

int Protect(Way way, void* address, size_t length, int protection) {
  auto* real = Next<decltype(mprotect)>(kMprotect, way);
  const int error = real != nullptr
                        ? real(address, length, protection)
                        : static_cast<int>(Returned(RawSyscall(SYS_mprotect, reinterpret_cast<long>(address),
                                                               static_cast<long>(length), protection)));
  const uint64_t start = reinterpret_cast<uint64_t>(address);
  // Where the range has a hole, or the mapping of a file that may not be protected so, the kernel changes what lies
  // before it, and fails.
  const int why = error == 0 ? 0 : errno;
  if ((why == 0 || why == ENOMEM || why == EACCES) && IsWanted() && IsRange(start, length)) {
    MappingPostProtect(start, EndOf(start, length), static_cast<uint32_t>(protection),
                       why == 0        ? ProtectExtent::kAll
                       : why == ENOMEM ? ProtectExtent::kToHole
                                       : ProtectExtent::kToFile);
  }
  return error;
}

void* Attach(Way way, int id, const void* address, int flags, const EntryRegisters& registers) {
  auto* real = Next<decltype(shmat)>(kShmat, way);
  void* result =
      real != nullptr
          ? real(id, address, flags)
          : reinterpret_cast<void*>(Returned(RawSyscall(SYS_shmat, id, reinterpret_cast<long>(address), flags)));
  if (result == MAP_FAILED || !IsWanted() || IsSandboxed()) return result;  // its size has to be asked for
  shmid_ds status;
  if (RawSyscall(SYS_shmctl, id, IPC_STAT, reinterpret_cast<long>(&status)) != 0 || status.shm_segsz == 0)
    return result;
  const uint64_t start = reinterpret_cast<uint64_t>(result);
  const int protection = PROT_READ | ((flags & SHM_RDONLY) != 0 ? 0 : PROT_WRITE);
  RecordMapping(start, EndOf(start, status.shm_segsz),
                FlagsOf(protection, MAP_SHARED | MAP_ANONYMOUS, registers.pc) | format::kMappingSegment, nullptr,
                registers);
  return result;
}

int Detach(Way way, const void* address) {
  auto* real = Next<decltype(shmdt)>(kShmdt, way);
  auto call = [&] {
    if (real != nullptr) return real(address);
    return static_cast<int>(Returned(RawSyscall(SYS_shmdt, reinterpret_cast<long>(address))));
  };
  if (!IsWanted()) return call();
  const uint64_t start = reinterpret_cast<uint64_t>(address), mark = MappingPostMarkSegment(start);
  return GoneOrBack(call(), start, start + 1, mark);
}

// The break moved from `before` to `after`.
void NoteBreak(uint64_t before, uint64_t after, const EntryRegisters& registers) {
  if (after > before) {
    RecordMapping(before, after,
                  FlagsOf(PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, registers.pc) | format::kMappingBreak,
                  nullptr, registers);
  } else if (after < before) {
    MappingPostRemove(after, before);
  }
}

}  // namespace
}  // namespace cadastre

using namespace cadastre;

CADASTRE_HIDDEN void* cadastre_mmap_seen(void* address, size_t length, int protection, int flags, int descriptor,
                                         off_t offset, EntryRegisters registers) {
  return Map(Way::kByName, address, length, protection, flags, descriptor, offset, registers);
}
CADASTRE_HIDDEN void* cadastre_mmap_number_seen(void* address, size_t length, int protection, int flags, int descriptor,
                                                off_t offset, EntryRegisters registers) {
  return Map(Way::kByNumber, address, length, protection, flags, descriptor, offset, registers);
}

CADASTRE_HIDDEN void* cadastre_mremap_seen(void* address, size_t old_length, size_t length, int flags, void* target,
                                           EntryRegisters registers) {
  return Remap(Way::kByName, address, old_length, length, flags, target, registers);
}
CADASTRE_HIDDEN void* cadastre_mremap_number_seen(void* address, size_t old_length, size_t length, int flags,
                                                  void* target, EntryRegisters registers) {
  return Remap(Way::kByNumber, address, old_length, length, flags, target, registers);
}

CADASTRE_HIDDEN void* cadastre_shmat_seen(int id, const void* address, int flags, EntryRegisters registers) {
  return Attach(Way::kByName, id, address, flags, registers);
}
CADASTRE_HIDDEN void* cadastre_shmat_number_seen(int id, const void* address, int flags, EntryRegisters registers) {
  return Attach(Way::kByNumber, id, address, flags, registers);
}

CADASTRE_EXPORT int munmap(void* address, size_t length) { return Unmap(Way::kByName, address, length); }
CADASTRE_EXPORT int mprotect(void* address, size_t length, int protection) {
  return Protect(Way::kByName, address, length, protection);
}
CADASTRE_EXPORT int shmdt(const void* address) { return Detach(Way::kByName, address); }

// syscall returns a long where these return an int.
CADASTRE_HIDDEN long cadastre_munmap_by_number(void* address, size_t length) {
  return Unmap(Way::kByNumber, address, length);
}
CADASTRE_HIDDEN long cadastre_mprotect_by_number(void* address, size_t length, int protection) {
  return Protect(Way::kByNumber, address, length, protection);
}
CADASTRE_HIDDEN long cadastre_shmdt_by_number(const void* address) { return Detach(Way::kByNumber, address); }

CADASTRE_HIDDEN int cadastre_brk_seen(void* end, EntryRegisters registers) {
  auto* real = Next<decltype(brk)>(kBrk, Way::kByName);
  const uint64_t before = static_cast<uint64_t>(RawSyscall(SYS_brk, 0));
  int error = 0;
  if (real != nullptr) {
    error = real(end);
  } else if (RawSyscall(SYS_brk, reinterpret_cast<long>(end)) < reinterpret_cast<long>(end)) {
    error = static_cast<int>(Returned(-ENOMEM));
  }
  if (error == 0 && IsWanted()) NoteBreak(before, reinterpret_cast<uint64_t>(end), registers);
  return error;
}

CADASTRE_HIDDEN void* cadastre_sbrk_seen(intptr_t increment, EntryRegisters registers) {
  auto* real = Next<decltype(sbrk)>(kSbrk, Way::kByName);
  if (real == nullptr) return reinterpret_cast<void*>(Returned(-ENOMEM));
  void* result = real(increment);
  const uint64_t before = reinterpret_cast<uint64_t>(result);
  if (result != MAP_FAILED && increment != 0 && IsWanted())
    NoteBreak(before, before + static_cast<uint64_t>(increment), registers);
  return result;
}
