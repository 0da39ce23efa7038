// The next allocator: the functions that the hooks forward to. All of one provider, the first library behind ours that
// has malloc; a block made by one library is never given to another. A member that the provider lacks is made from the
// provider's own aligned function (jemalloc has no pvalloc: taking libc's would hand a libc block to jemalloc's free).
//
// Thread- and signal-safety: RealAllocatorResolve may be called by several threads at once (same result); the table is
// plain words, written before `real_ready`. Nothing here allocates. Errors: without a provider the process has no
// malloc behind us; the hooks then serve from the bootstrap arena.
#ifndef CADASTRE_INTERPOSER_REAL_ALLOCATOR_H_
#define CADASTRE_INTERPOSER_REAL_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>

struct link_map;

namespace cadastre {

struct RealAllocator {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  size_t (*malloc_usable_size)(void*);
  // operator new and delete; null where the program has no C++ runtime (yet).
  void* (*operators[20])(size_t, size_t, size_t);
};

// Index into RealAllocator::operators, in the order of kOperatorNames.
enum OperatorIndex {
  kNew,
  kNewArray,
  kNewNothrow,
  kNewArrayNothrow,
  kNewAligned,
  kNewArrayAligned,
  kNewAlignedNothrow,
  kNewArrayAlignedNothrow,
  kDelete,
  kDeleteArray,
  kDeleteSized,
  kDeleteArraySized,
  kDeleteNothrow,
  kDeleteArrayNothrow,
  kDeleteAligned,
  kDeleteArrayAligned,
  kDeleteSizedAligned,
  kDeleteArraySizedAligned,
  kDeleteAlignedNothrow,
  kDeleteArrayAlignedNothrow,
  kOperatorCount
};
static_assert(kOperatorCount == 20);
extern const char kOperatorNames[kOperatorCount][40];

extern RealAllocator g_real;

// True for a form that is the allocator's own and does not come through malloc, so that its hook must count.
extern uint8_t g_operator_is_own[kOperatorCount];

// Fills the table once. False: there is no next allocator, or the loader has not relocated us.
bool RealAllocatorResolve();
bool RealAllocatorIsReady();

// The library that serves malloc behind us, and the first definition of malloc in the process (ours, unless somebody
// stands before us).
const link_map* RealAllocatorLibrary();
bool MallocIsServedBeforeUs(const link_map** by);

// Tries each own form of new once: where the allocator's code comes through one of our other hooks (jemalloc's aligned
// new calls aligned_alloc), that hook counts and the form becomes a pure tail jump. Call under kGuardOwnWork, outside
// hooks.
void ProbeOwnOperators();

// operator new or delete for a caller when start-up found none: the caller's own library, else any loaded library (a
// C++ runtime that came by dlopen).
void* ResolveOperatorFor(OperatorIndex index, const void* caller);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_REAL_ALLOCATOR_H_
