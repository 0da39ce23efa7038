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
};

extern RealAllocator g_real;

// Fills the table once. False: there is no next allocator, or the loader has not relocated us.
bool RealAllocatorResolve();
bool RealAllocatorIsReady();

// False where somebody before us serves malloc: the executable itself, or a library preloaded before ours. Then a hook
// of ours is reached only for what that one lacks, forwards to what would be found without us, and nothing is recorded:
// the frees would not be seen.
bool RealAllocatorIsReached();

// The runtime of AddressSanitizer or one of its kind (a library of its own) serves malloc: nothing is recorded.
bool RealAllocatorIsSanitizer();

// The library that serves malloc behind us, and the first definition of malloc in the process (ours, unless somebody
// stands before us).
const link_map* RealAllocatorLibrary();
bool MallocIsServedBeforeUs(const link_map** by);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_REAL_ALLOCATOR_H_
