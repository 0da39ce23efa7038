#include "interposer/bootstrap_arena.h"

#include "interposer/free_filter.h"

namespace cadastre {
namespace {

// Each block is preceded by its size, in the 64 bytes before it (so the alignment of the block is that of the bump
// pointer).
constexpr size_t kBlockHeaderBytes = 64;
alignas(4096) char arena[kArenaBytes];
size_t arena_used;

}  // namespace

void* ArenaAllocate(size_t bytes, size_t alignment) {
  if (bytes > kArenaBytes || alignment > 4096) return nullptr;
  if (alignment < 64) alignment = 64;
  size_t used = __atomic_load_n(&arena_used, __ATOMIC_RELAXED);
  size_t start, end;
  do {
    start = (used + kBlockHeaderBytes + alignment - 1) & ~(alignment - 1);
    end = (start + (bytes == 0 ? 1 : bytes) + 63) & ~size_t{63};
    if (end > kArenaBytes) return nullptr;
  } while (!__atomic_compare_exchange_n(&arena_used, &used, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  char* block = arena + start;
  *reinterpret_cast<size_t*>(block - kBlockHeaderBytes) = bytes;
  FilterAddForEver(reinterpret_cast<uintptr_t>(block));  // so that free's fast path never passes it on
  return block;
}

bool ArenaContains(const void* pointer) {
  const char* p = static_cast<const char*>(pointer);
  return p >= arena && p < arena + kArenaBytes;
}

size_t ArenaUsableBytes(const void* pointer) {
  return *reinterpret_cast<const size_t*>(static_cast<const char*>(pointer) - kBlockHeaderBytes);
}

}  // namespace cadastre
