// What every reallocating hook does around the real call (hooks_malloc.cc, hooks_optional.cc).
//
// realloc's contract towards the record: gone before the real call can release the address, back again if the block was
// kept, forgotten where a null means that the block was freed.
#ifndef CADASTRE_INTERPOSER_REALLOCATION_H_
#define CADASTRE_INTERPOSER_REALLOCATION_H_

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "interposer/bootstrap_arena.h"
#include "interposer/entry_shape.h"
#include "interposer/free_filter.h"
#include "interposer/real_allocator.h"
#include "interposer/recorder.h"
#include "interposer/thread_state.h"

namespace cadastre {

inline void* FromArena(size_t bytes, size_t alignment = 64) {
  void* pointer = ArenaAllocate(bytes, alignment);
  // errno's own address may not be known yet when we are not relocated; then nobody looks at it either.
  if (pointer == nullptr && ThreadStateOffset() != 0) errno = ENOMEM;
  return pointer;
}

// An arena block moves to the real allocator, or within the arena while there is none; it is never given back.
inline void* MoveOutOfArena(void* pointer, size_t bytes) {
  void* moved = RealAllocatorResolve() ? g_real.malloc(bytes) : FromArena(bytes);
  if (moved == nullptr) return nullptr;
  const size_t old_bytes = ArenaUsableBytes(pointer);
  memcpy(moved, pointer, old_bytes < bytes ? old_bytes : bytes);
  return moved;
}

template <typename Reallocate>
void* ReallocateRecorded(void* pointer, size_t bytes, NullMeans null_means, const EntryRegisters& registers,
                         Reallocate reallocate) {
  if (ArenaContains(pointer)) {
    void* moved = MoveOutOfArena(pointer, bytes);
    if (moved != nullptr) RecordAllocation(moved, bytes, registers);
    return moved;
  }
  if (!RealAllocatorResolve()) return pointer == nullptr ? FromArena(bytes) : nullptr;
  LiveSampleData removed;
  const bool was_recorded = pointer != nullptr && FilterMayContain(pointer) && RecordFree(pointer, &removed);
  void* moved = reallocate();
  if (moved == nullptr) {
    const bool kept = null_means == NullMeans::kKept || (null_means == NullMeans::kFreedIfSizeIsZero && bytes != 0);
    if (was_recorded && kept) UndoFree(removed);
    return nullptr;
  }
  if (TrySkipSampleFast(bytes)) return moved;  // the old block's record brought us here, the new block is not due
  RecordAllocation(moved, bytes, registers);
  return moved;
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_REALLOCATION_H_
