// operator new and delete, all forms.
//
// Where the next definition is libstdc++'s they are pure tail jumps: it calls malloc, which counts. Where the allocator
// has its own (jemalloc, tcmalloc, mimalloc) it does not come through malloc, so these hooks count, and forward each
// form with its size and alignment to the same form of the same library. A C program that loads a C++ plug-in with
// RTLD_LOCAL finds our names first although no C++ runtime was there at start: then the form is resolved for the
// caller, from its own library or from the runtime it brought, and remembered until a library goes away.
#include <stdlib.h>

#include "interposer/bootstrap_arena.h"
#include "interposer/elf_lookup.h"
#include "interposer/free_filter.h"
#include "interposer/hooks.h"
#include "interposer/library_map.h"
#include "interposer/real_allocator.h"
#include "interposer/recorder.h"
#include "interposer/thread_state.h"

namespace cadastre {
namespace {

// What was resolved late: one entry a form, valid for one library of callers and one generation of the library map.
struct LateOperator {
  uint32_t version;  // odd while being written (readers that see it, or a change, resolve again)
  uint32_t generation;
  const void* caller_library;
  void* function;
};
LateOperator late_operators[kOperatorCount];

void* FindLate(OperatorIndex index, const void* caller) {
  LateOperator* entry = &late_operators[index];
  const link_map* library = LibraryOf(caller);
  const uint32_t before = __atomic_load_n(&entry->version, __ATOMIC_ACQUIRE);
  const LateOperator copy = *entry;
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if ((before & 1) == 0 && __atomic_load_n(&entry->version, __ATOMIC_RELAXED) == before && copy.function != nullptr &&
      copy.caller_library == library && copy.generation == LibraryMapGeneration()) {
    return copy.function;
  }
  void* found = ResolveOperatorFor(index, caller);
  uint32_t even = before & ~1u;
  if (found != nullptr &&
      __atomic_compare_exchange_n(&entry->version, &even, even + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    entry->generation = LibraryMapGeneration();
    entry->caller_library = library;
    entry->function = found;
    __atomic_store_n(&entry->version, even + 2, __ATOMIC_RELEASE);
  }
  return found;
}

using Operator = void* (*)(size_t, size_t, size_t);

// rdi, rsi, rdx as the caller set them: size, and then alignment or the nothrow tag where the form has them.
void* NewSlow(OperatorIndex index, size_t a, size_t b, size_t c, const EntryRegisters* registers) {
  RealAllocatorResolve();
  auto* real = g_real.operators[index];
  if (real == nullptr) real = reinterpret_cast<Operator>(FindLate(index, reinterpret_cast<const void*>(registers->pc)));
  if (real == nullptr) abort();  // no C++ runtime anywhere: nobody could have compiled this call
  void* pointer = real(a, b, c);
  if (g_operator_is_own[index] && pointer != nullptr && !TrySkipSampleFast(a)) RecordAllocation(pointer, a, *registers);
  return pointer;
}

void DeleteSlow(OperatorIndex index, void* pointer, size_t b, size_t c, const EntryRegisters* registers) {
  if (pointer == nullptr || !RealAllocatorResolve()) return;
  LiveSampleData removed;
  if (FilterMayContain(pointer)) RecordFree(pointer, &removed);
  auto* real = g_real.operators[index];
  if (real == nullptr) real = reinterpret_cast<Operator>(FindLate(index, reinterpret_cast<const void*>(registers->pc)));
  if (real == nullptr) return g_real.free(pointer);
  real(reinterpret_cast<size_t>(pointer), b, c);
}

}  // namespace
}  // namespace cadastre

using cadastre::EntryRegisters;
using cadastre::FilterMayContain;
using cadastre::g_operator_is_own;
using cadastre::g_real;
using cadastre::TrySkipSampleFast;

// One form of new: NAME(size[, alignment][, nothrow]); unused registers are passed on as they are.
#define CADASTRE_NEW(name, index)                                                                               \
  extern "C" __attribute__((visibility("hidden"))) void* cadastre##name##_entry(size_t, size_t, size_t);        \
  CADASTRE_SLOW_ENTRY(cadastre##name##_entry, cadastre##name##_slow);                                           \
  CADASTRE_EXPORT void* name(size_t a, size_t b, size_t c) {                                                    \
    auto* real = g_real.operators[cadastre::index];                                                             \
    if (real != nullptr && (!g_operator_is_own[cadastre::index] || TrySkipSampleFast(a))) return real(a, b, c); \
    return cadastre##name##_entry(a, b, c);                                                                     \
  }                                                                                                             \
  extern "C" __attribute__((visibility("hidden"), used)) void* cadastre##name##_slow(                           \
      size_t a, size_t b, size_t c, const EntryRegisters* registers) {                                          \
    return cadastre::NewSlow(cadastre::index, a, b, c, registers);                                              \
  }

#define CADASTRE_DELETE(name, index)                                                                                   \
  extern "C" __attribute__((visibility("hidden"))) void cadastre##name##_entry(void*, size_t, size_t);                 \
  CADASTRE_SLOW_ENTRY(cadastre##name##_entry, cadastre##name##_slow);                                                  \
  CADASTRE_EXPORT void name(void* pointer, size_t b, size_t c) {                                                       \
    auto* real =                                                                                                       \
        reinterpret_cast<void (*)(void*, size_t, size_t)>(reinterpret_cast<void*>(g_real.operators[cadastre::index])); \
    if (real != nullptr && !FilterMayContain(pointer)) return real(pointer, b, c);                                     \
    return cadastre##name##_entry(pointer, b, c);                                                                      \
  }                                                                                                                    \
  extern "C" __attribute__((visibility("hidden"), used)) void cadastre##name##_slow(void* pointer, size_t b, size_t c, \
                                                                                    const EntryRegisters* registers) { \
    if (cadastre::ArenaContains(pointer)) return;                                                                      \
    return cadastre::DeleteSlow(cadastre::index, pointer, b, c, registers);                                            \
  }

CADASTRE_NEW(_Znwm, kNew)
CADASTRE_NEW(_Znam, kNewArray)
CADASTRE_NEW(_ZnwmRKSt9nothrow_t, kNewNothrow)
CADASTRE_NEW(_ZnamRKSt9nothrow_t, kNewArrayNothrow)
CADASTRE_NEW(_ZnwmSt11align_val_t, kNewAligned)
CADASTRE_NEW(_ZnamSt11align_val_t, kNewArrayAligned)
CADASTRE_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, kNewAlignedNothrow)
CADASTRE_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, kNewArrayAlignedNothrow)
CADASTRE_DELETE(_ZdlPv, kDelete)
CADASTRE_DELETE(_ZdaPv, kDeleteArray)
CADASTRE_DELETE(_ZdlPvm, kDeleteSized)
CADASTRE_DELETE(_ZdaPvm, kDeleteArraySized)
CADASTRE_DELETE(_ZdlPvRKSt9nothrow_t, kDeleteNothrow)
CADASTRE_DELETE(_ZdaPvRKSt9nothrow_t, kDeleteArrayNothrow)
CADASTRE_DELETE(_ZdlPvSt11align_val_t, kDeleteAligned)
CADASTRE_DELETE(_ZdaPvSt11align_val_t, kDeleteArrayAligned)
CADASTRE_DELETE(_ZdlPvmSt11align_val_t, kDeleteSizedAligned)
CADASTRE_DELETE(_ZdaPvmSt11align_val_t, kDeleteArraySizedAligned)
CADASTRE_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, kDeleteAlignedNothrow)
CADASTRE_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, kDeleteArrayAlignedNothrow)
