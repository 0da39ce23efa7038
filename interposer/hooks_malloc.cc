// The malloc family: guard, real call, report. Nothing else lives here.
//
// Before the loader has relocated us, and where there is no allocator behind us, blocks come from the bootstrap arena;
// they are recognised by address for ever (the free filter has them, so free's fast path never passes one on).
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "interposer/bootstrap_arena.h"
#include "interposer/free_filter.h"
#include "interposer/hooks.h"
#include "interposer/real_allocator.h"
#include "interposer/reallocation.h"
#include "interposer/recorder.h"
#include "interposer/thread_state.h"

using cadastre::ArenaAllocate;
using cadastre::ArenaContains;
using cadastre::EntryRegisters;
using cadastre::FilterMayContain;
using cadastre::FromArena;
using cadastre::g_real;
using cadastre::NullMeans;
using cadastre::RealAllocatorResolve;
using cadastre::ReallocateRecorded;
using cadastre::RecordAllocation;
using cadastre::TrySkipSampleFast;

extern "C" {
// Entries of the slow paths (assembly, below) as the hooks jump to them.
__attribute__((visibility("hidden"))) void* cadastre_malloc_entry(size_t);
__attribute__((visibility("hidden"))) void* cadastre_calloc_entry(size_t, size_t);
__attribute__((visibility("hidden"))) void* cadastre_realloc_entry(void*, size_t);
__attribute__((visibility("hidden"))) void* cadastre_reallocarray_entry(void*, size_t, size_t);
__attribute__((visibility("hidden"))) int cadastre_posix_memalign_entry(void**, size_t, size_t);
__attribute__((visibility("hidden"))) void* cadastre_aligned_alloc_entry(size_t, size_t);
__attribute__((visibility("hidden"))) void* cadastre_memalign_entry(size_t, size_t);
__attribute__((visibility("hidden"))) void* cadastre_valloc_entry(size_t);
__attribute__((visibility("hidden"))) void* cadastre_pvalloc_entry(size_t);
__attribute__((visibility("hidden"))) void cadastre_free_slow(void*);
}

CADASTRE_SLOW_ENTRY(cadastre_malloc_entry, cadastre_malloc_slow);
CADASTRE_SLOW_ENTRY(cadastre_calloc_entry, cadastre_calloc_slow);
CADASTRE_SLOW_ENTRY(cadastre_realloc_entry, cadastre_realloc_slow);
CADASTRE_SLOW_ENTRY(cadastre_reallocarray_entry, cadastre_reallocarray_slow);
CADASTRE_SLOW_ENTRY(cadastre_posix_memalign_entry, cadastre_posix_memalign_slow);
CADASTRE_SLOW_ENTRY(cadastre_aligned_alloc_entry, cadastre_aligned_alloc_slow);
CADASTRE_SLOW_ENTRY(cadastre_memalign_entry, cadastre_memalign_slow);
CADASTRE_SLOW_ENTRY(cadastre_valloc_entry, cadastre_valloc_slow);
CADASTRE_SLOW_ENTRY(cadastre_pvalloc_entry, cadastre_pvalloc_slow);

// ---- fast paths
// -------------------------------------------------------------------------------------------------------

CADASTRE_EXPORT void* malloc(size_t bytes) {
  if (TrySkipSampleFast(bytes)) return g_real.malloc(bytes);
  return cadastre_malloc_entry(bytes);
}

CADASTRE_EXPORT void free(void* pointer) {
  if (FilterMayContain(pointer)) return cadastre_free_slow(pointer);
  auto* next = g_real.free;
  if (__builtin_expect(next == nullptr, 0)) return cadastre_free_slow(pointer);
  return next(pointer);
}

CADASTRE_EXPORT void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (!__builtin_mul_overflow(count, size, &bytes) && TrySkipSampleFast(bytes)) return g_real.calloc(count, size);
  return cadastre_calloc_entry(count, size);
}

CADASTRE_EXPORT void* realloc(void* pointer, size_t bytes) {
  if (!FilterMayContain(pointer) && TrySkipSampleFast(bytes)) return g_real.realloc(pointer, bytes);
  return cadastre_realloc_entry(pointer, bytes);
}

CADASTRE_EXPORT void* reallocarray(void* pointer, size_t count, size_t size) {
  size_t bytes;
  if (!FilterMayContain(pointer) && !__builtin_mul_overflow(count, size, &bytes) && TrySkipSampleFast(bytes)) {
    return g_real.reallocarray(pointer, count, size);
  }
  return cadastre_reallocarray_entry(pointer, count, size);
}

CADASTRE_EXPORT int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (TrySkipSampleFast(bytes)) return g_real.posix_memalign(out, alignment, bytes);
  return cadastre_posix_memalign_entry(out, alignment, bytes);
}

CADASTRE_EXPORT void* aligned_alloc(size_t alignment, size_t bytes) {
  if (TrySkipSampleFast(bytes)) return g_real.aligned_alloc(alignment, bytes);
  return cadastre_aligned_alloc_entry(alignment, bytes);
}

CADASTRE_EXPORT void* memalign(size_t alignment, size_t bytes) {
  if (TrySkipSampleFast(bytes)) return g_real.memalign(alignment, bytes);
  return cadastre_memalign_entry(alignment, bytes);
}

CADASTRE_EXPORT void* valloc(size_t bytes) {
  if (TrySkipSampleFast(bytes)) return g_real.valloc(bytes);
  return cadastre_valloc_entry(bytes);
}

CADASTRE_EXPORT void* pvalloc(size_t bytes) {
  if (TrySkipSampleFast(bytes)) return g_real.pvalloc(bytes);
  return cadastre_pvalloc_entry(bytes);
}

CADASTRE_EXPORT size_t malloc_usable_size(void* pointer) {
  if (ArenaContains(pointer)) return cadastre::ArenaUsableBytes(pointer);
  auto* next = g_real.malloc_usable_size;
  return next != nullptr ? next(pointer) : 0;
}

// ---- slow paths
// -------------------------------------------------------------------------------------------------------

namespace {

void* Report(void* pointer, size_t bytes, const EntryRegisters* registers) {
  if (pointer != nullptr) RecordAllocation(pointer, bytes, *registers);
  return pointer;
}

}  // namespace

// Aligned anew: a caller that breaks the ABI by eight bytes is one whom malloc itself forgives.
#define CADASTRE_SLOW extern "C" __attribute__((visibility("hidden"), used, noinline, force_align_arg_pointer))

CADASTRE_SLOW void* cadastre_malloc_slow(size_t bytes, size_t, size_t, const EntryRegisters* registers) {
  if (!RealAllocatorResolve()) return FromArena(bytes);
  return Report(g_real.malloc(bytes), bytes, registers);
}

CADASTRE_SLOW void cadastre_free_slow(void* pointer) {
  if (ArenaContains(pointer)) return;
  if (!RealAllocatorResolve()) return;  // nothing but arena blocks can exist yet
  if (pointer != nullptr) cadastre::RecordFree(pointer);
  return g_real.free(pointer);
}

CADASTRE_SLOW void* cadastre_calloc_slow(size_t count, size_t size, size_t, const EntryRegisters* registers) {
  size_t bytes;
  const bool fits = !__builtin_mul_overflow(count, size, &bytes);
  if (!RealAllocatorResolve()) return fits ? FromArena(bytes) : nullptr;
  void* pointer = g_real.calloc(count, size);
  return fits ? Report(pointer, bytes, registers) : pointer;
}

CADASTRE_SLOW void* cadastre_realloc_slow(void* pointer, size_t bytes, size_t, const EntryRegisters* registers) {
  return ReallocateRecorded(pointer, bytes, NullMeans::kFreedIfSizeIsZero, *registers,
                            [=] { return g_real.realloc(pointer, bytes); });
}

CADASTRE_SLOW void* cadastre_reallocarray_slow(void* pointer, size_t count, size_t size,
                                               const EntryRegisters* registers) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return ReallocateRecorded(pointer, bytes, NullMeans::kFreedIfSizeIsZero, *registers,
                            [=] { return g_real.reallocarray(pointer, count, size); });
}

CADASTRE_SLOW int cadastre_posix_memalign_slow(void** out, size_t alignment, size_t bytes,
                                               const EntryRegisters* registers) {
  if (!RealAllocatorResolve()) {
    void* pointer = ArenaAllocate(bytes, alignment);
    if (pointer == nullptr) return ENOMEM;
    *out = pointer;
    return 0;
  }
  const int error = g_real.posix_memalign(out, alignment, bytes);
  if (error == 0) Report(*out, bytes, registers);
  return error;
}

CADASTRE_SLOW void* cadastre_aligned_alloc_slow(size_t alignment, size_t bytes, size_t,
                                                const EntryRegisters* registers) {
  if (!RealAllocatorResolve()) return FromArena(bytes, alignment);
  return Report(g_real.aligned_alloc(alignment, bytes), bytes, registers);
}

CADASTRE_SLOW void* cadastre_memalign_slow(size_t alignment, size_t bytes, size_t, const EntryRegisters* registers) {
  if (!RealAllocatorResolve()) return FromArena(bytes, alignment);
  return Report(g_real.memalign(alignment, bytes), bytes, registers);
}

CADASTRE_SLOW void* cadastre_valloc_slow(size_t bytes, size_t, size_t, const EntryRegisters* registers) {
  if (!RealAllocatorResolve()) return FromArena(bytes, 4096);
  return Report(g_real.valloc(bytes), bytes, registers);
}

CADASTRE_SLOW void* cadastre_pvalloc_slow(size_t bytes, size_t, size_t, const EntryRegisters* registers) {
  if (!RealAllocatorResolve()) return FromArena(bytes, 4096);
  return Report(g_real.pvalloc(bytes), bytes, registers);
}
