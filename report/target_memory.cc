#include "report/target_memory.h"

#include <string.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace cadastre {
namespace {

// The head of struct _heap_info; the fields are the same from glibc 2.10 on.
struct ArenaHeap {
  uint64_t arena;  // of the first heap it lies behind this header
  uint64_t previous;
  uint64_t size;
  uint64_t mprotect_size;
};

constexpr uint64_t kPagesPassed = 1024;  // that are no block's first page

bool IsPlainAnonymous(const MemoryArea& area) { return area.name.empty() && area.inode == 0 && !area.shared; }

bool IsArenaHeap(const ArenaHeap& heap, uint64_t address) {
  const uint64_t base_of_first = heap.arena & ~(kArenaHeapBytes - 1);
  const bool arena_is_near = heap.arena != 0 && heap.arena - base_of_first < 256;
  const bool first = base_of_first == address && heap.previous == 0;
  const bool later = base_of_first != address && heap.previous != 0 && heap.previous % kArenaHeapBytes == 0;
  return arena_is_near && (first || later) && heap.size != 0 && heap.size % kPage == 0 &&
         heap.mprotect_size % kPage == 0 && heap.size <= heap.mprotect_size && heap.mprotect_size <= kArenaHeapBytes;
}

// A block with a mapping of its own: nothing before it, and a size in pages with the flag IS_MMAPPED (2) alone.
struct ChunkHead {
  uint64_t previous_size;
  uint64_t size;
};
bool IsMappedChunk(const ChunkHead& head, uint64_t room) {
  const uint64_t bytes = head.size & ~7ull;
  return head.previous_size == 0 && (head.size & 7) == 2 && bytes != 0 && bytes % kPage == 0 && bytes <= room;
}

void FindChunks(const TargetMemory& memory, const MemoryArea& area, std::vector<KnownRange>* found) {
  // Neighbours merge, newer ones below older ones: blocks stand one after the other from the start, as a rule.
  // Before the first may lie a library's zero-initialised data.
  uint64_t passed = 0;
  for (uint64_t at = area.start; at < area.end && passed < kPagesPassed;) {
    std::optional<ChunkHead> head = memory.Get<ChunkHead>(at);
    if (!head.has_value() || !IsMappedChunk(*head, area.end - at)) {
      at += kPage;
      passed++;
      continue;
    }
    const uint64_t end = at + (head->size & ~7ull);
    found->push_back({at, end, KnownUse::kAllocator, 0, ""});
    at = end;
  }
}

}  // namespace

bool TargetMemory::Read(uint64_t address, void* to, size_t bytes) const {
  iovec local = {to, bytes}, remote = {reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(pid_, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

std::string TargetMemory::Text(uint64_t address, size_t limit) const {
  std::string text;
  char part[64];
  while (text.size() < limit) {
    // Not across a page's end: the next one may not be there.
    const size_t bytes = std::min<size_t>(sizeof(part), kPage - address % kPage);
    if (!Read(address, part, bytes)) return "";
    const size_t length = strnlen(part, bytes);
    text.append(part, length);
    if (length < bytes) return text;
    address += bytes;
  }
  return "";
}

std::vector<KnownRange> FindAllocatorHeaps(const TargetMemory& memory, const std::vector<MemoryArea>& areas) {
  std::vector<KnownRange> found;
  for (const MemoryArea& area : areas) {
    if (!IsPlainAnonymous(area) || !area.readable || !area.writable || area.executable || area.rss_bytes == 0) continue;
    const uint64_t first = (area.start + kArenaHeapBytes - 1) & ~(kArenaHeapBytes - 1);
    for (uint64_t at = first; at < area.end; at += kArenaHeapBytes) {
      std::optional<ArenaHeap> heap = memory.Get<ArenaHeap>(at);
      if (heap.has_value() && IsArenaHeap(*heap, at))
        found.push_back({at, at + kArenaHeapBytes, KnownUse::kAllocator, 0, ""});  // reserved as a whole
    }
    FindChunks(memory, area, &found);
  }
  return found;
}

}  // namespace cadastre
