// The entry points that only some allocators have (optional_entries.def): guard, real call, report. One hook for each
// row, one body for each shape.
#include <errno.h>
#include <string.h>

#include "interposer/bootstrap_arena.h"
#include "interposer/elf_lookup.h"
#include "interposer/entry_shape.h"
#include "interposer/free_filter.h"
#include "interposer/hooks.h"
#include "interposer/optional_entries.h"
#include "interposer/real_allocator.h"
#include "interposer/reallocation.h"
#include "interposer/recorder.h"
#include "interposer/thread_state.h"

namespace cadastre {
namespace {

// ---- fast path
// -------------------------------------------------------------------------------------------------------

// True if there is nothing to record and nothing to forget: the caller tail-jumps to the real function.
template <EntryShape kShape>
__attribute__((always_inline)) inline bool NothingIsDue(const OptionalEntry& entry, uint64_t a, uint64_t b, uint64_t c,
                                                        uint64_t d) {
  const uint64_t arguments[] = {a, b, c, d};
  [[maybe_unused]] const void* block = reinterpret_cast<const void*>(arguments[kShape.block]);
  [[maybe_unused]] size_t bytes;
  switch (kShape.action) {
    case EntryAction::kAllocate:
      return entry.is_counted_inside || (EntryBytes(kShape, arguments, &bytes) && TrySkipSampleFast(bytes));
    case EntryAction::kAllocateOut:
      return EntryBytes(kShape, arguments, &bytes) && TrySkipSampleFast(bytes);
    case EntryAction::kReallocate:
    case EntryAction::kResize:
      return !FilterMayContain(block) && EntryBytes(kShape, arguments, &bytes) && TrySkipSampleFast(bytes);
    case EntryAction::kFree:
    case EntryAction::kUsableSize:
      return !FilterMayContain(block);
    case EntryAction::kReallocateOut:
    case EntryAction::kCopyText:
    case EntryAction::kCopyWideText:
    case EntryAction::kCopyTextOut:
    case EntryAction::kFreeHeap:
      break;
  }
  return false;
}

// ---- slow path
// -------------------------------------------------------------------------------------------------------

// What the assembly entry stores: the caller's registers, and the arguments as they were passed.
struct EntryCall {
  EntryRegisters registers;
  uint64_t arguments[6];
};
static_assert(sizeof(EntryCall) == 112 && offsetof(EntryCall, arguments) == 64);

uint64_t CallReal(const OptionalEntry& entry, const uint64_t* arguments) {
  return entry.real(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}

void Forget(void* block) {
  if (block != nullptr && FilterMayContain(block)) RecordFree(block);
}

uint64_t Allocate(const OptionalEntry& entry, const EntryCall& call) {
  size_t bytes;
  const bool fits = EntryBytes(entry.shape, call.arguments, &bytes);
  const uint64_t result = CallReal(entry, call.arguments);
  const bool stored = entry.shape.action == EntryAction::kAllocateOut;
  void* block = reinterpret_cast<void*>(result);
  if (stored) block = result == 0 ? *reinterpret_cast<void**>(call.arguments[0]) : nullptr;
  if (fits && block != nullptr) RecordAllocation(block, bytes, call.registers);
  return result;
}

uint64_t Reallocate(const OptionalEntry& entry, const EntryCall& call) {
  size_t bytes;
  if (!EntryBytes(entry.shape, call.arguments, &bytes)) return CallReal(entry, call.arguments);  // it fails
  void* block = reinterpret_cast<void*>(call.arguments[entry.shape.block]);
  return reinterpret_cast<uint64_t>(ReallocateRecorded(block, bytes, entry.shape.null_means, call.registers, [&] {
    return reinterpret_cast<void*>(CallReal(entry, call.arguments));
  }));
}

uint64_t ReallocateOut(const OptionalEntry& entry, const EntryCall& call) {
  size_t bytes;
  if (!EntryBytes(entry.shape, call.arguments, &bytes)) return CallReal(entry, call.arguments);
  void** place = reinterpret_cast<void**>(call.arguments[0]);
  void* block;
  memcpy(&block, place, sizeof(block));
  if (ArenaContains(block)) {
    void* moved = MoveOutOfArena(block, bytes);
    if (moved == nullptr) return ENOMEM;
    memcpy(place, &moved, sizeof(moved));
    RecordAllocation(moved, bytes, call.registers);
    return 0;
  }
  uint64_t error = 0;
  ReallocateRecorded(block, bytes, entry.shape.null_means, call.registers, [&]() -> void* {
    error = CallReal(entry, call.arguments);
    void* moved;
    memcpy(&moved, place, sizeof(moved));
    return static_cast<int>(error) == 0 ? moved : nullptr;
  });
  return error;
}

// The block stays where it is. Where it did not become as large as was asked, nothing has changed.
uint64_t Resize(const OptionalEntry& entry, const EntryCall& call) {
  void* block = reinterpret_cast<void*>(call.arguments[entry.shape.block]);
  const uint64_t bytes = call.arguments[entry.shape.size];
  if (ArenaContains(block)) return ArenaUsableBytes(block);
  uint64_t result = 0;
  ReallocateRecorded(block, bytes, entry.shape.null_means, call.registers, [&] {
    result = CallReal(entry, call.arguments);
    return result >= bytes ? block : nullptr;
  });
  return result;
}

void RecordText(char* text, const EntryRegisters& registers) {
  const size_t bytes = strlen(text) + 1;
  if (!TrySkipSampleFast(bytes)) RecordAllocation(text, bytes, registers);
}

uint64_t CopyText(const OptionalEntry& entry, const EntryCall& call) {
  const uint64_t result = CallReal(entry, call.arguments);
  if (result == 0 || (entry.shape.block != 0 && result == call.arguments[entry.shape.block])) return result;
  RecordText(reinterpret_cast<char*>(result), call.registers);
  return result;
}

uint64_t CopyTextOut(const OptionalEntry& entry, const EntryCall& call) {
  const uint64_t error = CallReal(entry, call.arguments);
  auto* const* place = reinterpret_cast<char* const*>(call.arguments[0]);
  if (static_cast<int>(error) == 0 && place != nullptr && *place != nullptr) RecordText(*place, call.registers);
  return error;
}

uint64_t CopyWideText(const OptionalEntry& entry, const EntryCall& call) {
  const uint64_t result = CallReal(entry, call.arguments);
  if (result == 0) return 0;
  const auto* text = reinterpret_cast<const uint16_t*>(result);
  size_t units = 1;
  while (text[units - 1] != 0) units++;
  const size_t bytes = units * sizeof(*text);
  if (!TrySkipSampleFast(bytes)) RecordAllocation(reinterpret_cast<void*>(result), bytes, call.registers);
  return result;
}

// bool mi_heap_visit_blocks(heap, visit_blocks, visitor, argument): mimalloc.h, "Heap introspection". A block that was
// made with an alignment may begin before the address that the program got; such a record goes when the address
// returns.
bool ForgetVisited(const void*, const void*, void* block, size_t, void*) {
  Forget(block);
  return true;
}

uint64_t FreeHeap(const OptionalEntry& entry, const EntryCall& call) {
  using Visit = bool (*)(const void*, bool, bool (*)(const void*, const void*, void*, size_t, void*), void*);
  auto* visit = reinterpret_cast<Visit>(FindNextFunction("mi_heap_visit_blocks"));
  if (visit != nullptr && call.arguments[0] != 0)
    visit(reinterpret_cast<const void*>(call.arguments[0]), true, &ForgetVisited, nullptr);
  return CallReal(entry, call.arguments);
}

uint64_t Free(const OptionalEntry& entry, const EntryCall& call) {
  void* block = reinterpret_cast<void*>(call.arguments[entry.shape.block]);
  if (ArenaContains(block)) return 0;
  Forget(block);
  return CallReal(entry, call.arguments);
}

uint64_t UsableSize(const OptionalEntry& entry, const EntryCall& call) {
  const void* block = reinterpret_cast<const void*>(call.arguments[entry.shape.block]);
  return ArenaContains(block) ? ArenaUsableBytes(block) : CallReal(entry, call.arguments);
}

}  // namespace

CADASTRE_HIDDEN uint64_t cadastre_optional_slow(const EntryCall* call, const OptionalEntry* entry) {
  switch (entry->shape.action) {
    case EntryAction::kAllocate:
    case EntryAction::kAllocateOut:
      return Allocate(*entry, *call);
    case EntryAction::kReallocate:
      return Reallocate(*entry, *call);
    case EntryAction::kReallocateOut:
      return ReallocateOut(*entry, *call);
    case EntryAction::kResize:
      return Resize(*entry, *call);
    case EntryAction::kCopyText:
      return CopyText(*entry, *call);
    case EntryAction::kCopyWideText:
      return CopyWideText(*entry, *call);
    case EntryAction::kCopyTextOut:
      return CopyTextOut(*entry, *call);
    case EntryAction::kFree:
      return Free(*entry, *call);
    case EntryAction::kFreeHeap:
      return FreeHeap(*entry, *call);
    case EntryAction::kUsableSize:
      return UsableSize(*entry, *call);
  }
  return CallReal(*entry, call->arguments);
}

}  // namespace cadastre

// The slow entry of all rows: as CADASTRE_SLOW_ENTRY, with all six arguments (struct EntryCall) and the row in rax.
asm(".pushsection .text\n"
    ".type cadastre_optional_entry, @function\n.p2align 4\n"
    "cadastre_optional_entry:\n.cfi_startproc\n"
    "subq $120, %rsp\n .cfi_adjust_cfa_offset 120\n"
    "movq %rdi, 64(%rsp)\n"
    "movq %rsi, 72(%rsp)\n"
    "movq %rdx, 80(%rsp)\n"
    "movq %rcx, 88(%rsp)\n"
    "movq %r8, 96(%rsp)\n"
    "movq %r9, 104(%rsp)\n"
    "movq %rax, %rsi\n"
    "movq 120(%rsp), %rax\n"
    "movq %rax, (%rsp)\n"
    "leaq 128(%rsp), %rax\n"
    "movq %rax, 8(%rsp)\n"
    "movq %rbp, 16(%rsp)\n"
    "movq %rbx, 24(%rsp)\n"
    "movq %r12, 32(%rsp)\n"
    "movq %r13, 40(%rsp)\n"
    "movq %r14, 48(%rsp)\n"
    "movq %r15, 56(%rsp)\n"
    "movq %rsp, %rdi\n"
    "call cadastre_optional_slow\n"
    "addq $120, %rsp\n .cfi_adjust_cfa_offset -120\n"
    "ret\n"
    ".cfi_endproc\n.size cadastre_optional_entry, .-cadastre_optional_entry\n"
    ".popsection\n");

// A row and its hook. `stem` makes their symbols; `linkage` is the hook's, `placement` the row's.
#define CADASTRE_HOOK(linkage, placement, family_name, shape_name, stem, name)                                    \
  linkage uint64_t cadastre_hook_##stem(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);              \
  CADASTRE_HIDDEN uint64_t cadastre_slow_##stem(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);      \
  extern "C" {                                                                                                    \
  __attribute__((visibility("hidden"), used))                                                                     \
  placement cadastre::OptionalEntry cadastre_entry_##stem = {nullptr,                                             \
                                                             0,                                                   \
                                                             cadastre::EntryFamily::k##family_name,               \
                                                             cadastre::kShape##shape_name,                        \
                                                             #name,                                               \
                                                             reinterpret_cast<void*>(&cadastre_hook_##stem),      \
                                                             nullptr};                                            \
  }                                                                                                               \
  asm(".pushsection .text\n"                                                                                      \
      ".type cadastre_slow_" #stem                                                                                \
      ", @function\n"                                                                                             \
      "cadastre_slow_" #stem ": leaq cadastre_entry_" #stem                                                       \
      "(%rip), %rax\n"                                                                                            \
      "jmp cadastre_optional_entry\n"                                                                             \
      ".size cadastre_slow_" #stem ", .-cadastre_slow_" #stem                                                     \
      "\n"                                                                                                        \
      ".popsection\n");                                                                                           \
  linkage uint64_t cadastre_hook_##stem(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) { \
    if (cadastre::NothingIsDue<cadastre::kShape##shape_name>(cadastre_entry_##stem, a, b, c, d))                  \
      return cadastre_entry_##stem.real(a, b, c, d, e, f);                                                        \
    return cadastre_slow_##stem(a, b, c, d, e, f);                                                                \
  }

// One of the table's, and the symbol that sleeps under the hook's address.
#define CADASTRE_ENTRY(family_name, shape_name, name)                         \
  asm(".symver cadastre_hook_" #name ", " #name "@CADASTRE_ASLEEP, local\n"); \
  CADASTRE_HOOK(CADASTRE_EXPORT, __attribute__((section("cadastre_entries"))), family_name, shape_name, name, name)

#include "interposer/optional_entries.def"

// ---- libc's own, where another library serves malloc
// -------------------------------------------------------------------------------------------------------

// Not exported: only dlsym gives these hooks out, for a handle by which libc's function would be found.
#define CADASTRE_LIBC_ENTRY(shape_name, name) CADASTRE_HOOK(CADASTRE_HIDDEN, , Libc, shape_name, libc_##name, name)

CADASTRE_LIBC_ENTRY(Allocate, malloc)
CADASTRE_LIBC_ENTRY(Free, free)
CADASTRE_LIBC_ENTRY(AllocateArray, calloc)
CADASTRE_LIBC_ENTRY(Reallocate, realloc)
CADASTRE_LIBC_ENTRY(PosixMemalign, posix_memalign)
CADASTRE_LIBC_ENTRY(AllocateSecond, aligned_alloc)
CADASTRE_LIBC_ENTRY(AllocateSecond, memalign)
CADASTRE_LIBC_ENTRY(Allocate, valloc)
CADASTRE_LIBC_ENTRY(Allocate, pvalloc)

namespace cadastre {

const OptionalEntry* LibcEntry(const char* name, void* found) {
  const link_map* libc = LibraryOf(found);
  if (libc == nullptr || libc == RealAllocatorLibrary() || FindInLibrary(libc, "gnu_get_libc_version") == nullptr)
    return nullptr;
  OptionalEntry* const entries[] = {
      &cadastre_entry_libc_malloc,   &cadastre_entry_libc_free,           &cadastre_entry_libc_calloc,
      &cadastre_entry_libc_realloc,  &cadastre_entry_libc_posix_memalign, &cadastre_entry_libc_aligned_alloc,
      &cadastre_entry_libc_memalign, &cadastre_entry_libc_valloc,         &cadastre_entry_libc_pvalloc,
  };
  for (OptionalEntry* entry : entries) {
    if (strcmp(entry->name, name) != 0) continue;
    __atomic_store_n(&entry->real, reinterpret_cast<EntryFunction>(found), __ATOMIC_RELEASE);
    return entry;
  }
  return nullptr;
}

}  // namespace cadastre

// ---- waking up
// -------------------------------------------------------------------------------------------------------

// The loader resolves this ifunc at the end of our relocation: after all libraries have been relocated, before the
// executable is, and while no library is half done.
extern "C" {
static void cadastre_nothing() {}
static void (*cadastre_wake_entries())() {
  if (cadastre::RealAllocatorResolve()) cadastre::WakeEntries();
  return &cadastre_nothing;
}
static void cadastre_woken() __attribute__((ifunc("cadastre_wake_entries")));
__attribute__((visibility("hidden"), used)) void (*const volatile cadastre_woken_pointer)() = &cadastre_woken;
}
