// A small static heap for calls that come before the real allocator can be called: from ifunc resolvers while the
// loader still relocates, and from the loader's own calls inside start-up.
//
// Blocks are zeroed, 64-byte aligned, sized in bytes, never given to the next allocator and recognised for ever by
// free, realloc and malloc_usable_size (free does nothing: the arena only ever holds a few start-up blocks). Works
// before relocation: everything here is addressed relative to the instruction pointer. Thread- and signal-safety:
// lock-free. Errors: nullptr when the arena is full or the request cannot fit.
#ifndef CADASTRE_INTERPOSER_BOOTSTRAP_ARENA_H_
#define CADASTRE_INTERPOSER_BOOTSTRAP_ARENA_H_

#include <stddef.h>
#include <stdint.h>

namespace cadastre {

// 256 KiB of zero pages: costs nothing until it is used. The largest start-up use seen is below 20 KiB.
inline constexpr size_t kArenaBytes = 256 * 1024;

// alignment: a power of two up to 4096.
void* ArenaAllocate(size_t bytes, size_t alignment = 64);
bool ArenaContains(const void* pointer);
size_t ArenaUsableBytes(const void* pointer);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_BOOTSTRAP_ARENA_H_
