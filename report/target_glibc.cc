// What glibc's malloc says of itself, read from outside: the arenas' own structures (malloc/malloc.c, struct
// malloc_state), found by their shape, as no symbol names them in a stripped libc.
//
// glibc 2.27 and later have this layout. An arena is only believed if every one of its 127 lists of free chunks is
// either empty, which is a pair of pointers back to the list itself, or leads to where chunks can be; nothing else in a
// libc's data looks like that. The lists are walked while the program uses them: each step is checked, and a list that
// changes under the walk is left there (`whole` is false then).
#include <algorithm>
#include <array>
#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "report/clock.h"
#include "report/target_memory.h"

namespace cadastre {
namespace {

constexpr size_t kBins = 127, kFastBins = 10;
constexpr uint64_t kChunkAlignment = 16, kChunkHeader = 16, kSmallestChunk = 32, kSizeMask = ~7ull;
constexpr size_t kMaxArenas = 4096;
constexpr uint64_t kMaxChunks = 200'000;  // a third of a second's reading

struct Arena {
  uint32_t mutex, flags, have_fast_chunks, padding;
  uint64_t fast[kFastBins];
  uint64_t top, last_remainder;
  uint64_t bins[2 * kBins];  // first and last chunk of each list
  uint32_t bin_map[4];
  uint64_t next, next_free, attached_threads;
  uint64_t system_bytes, max_system_bytes;
};
static_assert(sizeof(Arena) == 2200 && offsetof(Arena, bins) == 112);

struct Chunk {
  uint64_t previous_size, size, next, previous;  // the links only in free chunks
};

class Glibc {
 public:
  Glibc(const TargetMemory& memory, const std::vector<MemoryArea>& areas) : memory_(memory), areas_(areas) {}

  AllocatorState Read() {
    const uint64_t first = FindMainArena();
    if (first == 0) return {};
    state_.name = "glibc";
    state_.taken_realtime_ns = RealtimeNow();
    uint64_t at = first;
    do {
      std::optional<Arena> arena = memory_.Get<Arena>(at);
      if (!arena.has_value() || !IsArena(*arena, at)) {
        state_.whole = false;
        break;
      }
      Add(*arena, at);
      at = arena->next;
    } while (at != first && state_.arenas < kMaxArenas);
    return state_;
  }

 private:
  // Address as the list's own "chunk": its links lie where those of a chunk would.
  static uint64_t ListOf(uint64_t arena, size_t bin) {
    return arena + offsetof(Arena, bins) + 16 * bin - offsetof(Chunk, next);
  }

  bool CanBeChunk(uint64_t address) const {
    if (address % kChunkAlignment != 0) return false;
    auto area = std::upper_bound(areas_.begin(), areas_.end(), address,
                                 [](uint64_t wanted, const MemoryArea& other) { return wanted < other.end; });
    return area != areas_.end() && area->start <= address && area->writable && !area->shared &&
           (area->name.empty() || area->name[0] == '[');
  }

  bool IsArena(const Arena& arena, uint64_t at) const {
    if (arena.system_bytes == 0 || arena.system_bytes % kPage != 0 || arena.system_bytes > arena.max_system_bytes ||
        arena.next == 0 || arena.mutex > 2 || !CanBeChunk(arena.top))
      return false;
    for (size_t bin = 0; bin < kBins; bin++) {
      const uint64_t first = arena.bins[2 * bin], last = arena.bins[2 * bin + 1], list = ListOf(at, bin);
      if ((first == list) != (last == list)) return false;
      if (first != list && (!CanBeChunk(first) || !CanBeChunk(last))) return false;
    }
    return true;
  }

  // In libc's own data: initialised, so it lies in the file's mapping.
  uint64_t FindMainArena() const {
    for (const MemoryArea& area : areas_) {
      const absl::string_view name = absl::StripSuffix(area.name, " (deleted)");
      if (!area.writable || !(absl::EndsWith(name, "/libc.so.6") || absl::StrContains(name, "/libc-2."))) continue;
      std::vector<char> data(area.end - area.start);
      if (data.size() > (1 << 20) || !memory_.Read(area.start, data.data(), data.size())) continue;
      for (size_t offset = 0; offset + sizeof(Arena) <= data.size(); offset += 8) {
        Arena arena;
        std::copy_n(data.data() + offset, sizeof(arena), reinterpret_cast<char*>(&arena));
        if (IsArena(arena, area.start + offset)) return area.start + offset;
      }
    }
    return 0;
  }

  void Add(const Arena& arena, uint64_t at) {
    state_.arenas++;
    state_.system_bytes += arena.system_bytes;
    if (std::optional<Chunk> top = memory_.Get<Chunk>(arena.top); top.has_value()) {
      const uint64_t bytes = top->size & kSizeMask;
      if (bytes <= arena.system_bytes) state_.top_bytes += bytes;
    }
    for (size_t bin = 0; bin < kBins; bin++) WalkList(ListOf(at, bin), arena.bins[2 * bin]);
    for (size_t bin = 0; bin < kFastBins; bin++) WalkFastList(arena.fast[bin], kSmallestChunk + 16 * bin);
  }

  bool Count(uint64_t bytes) {
    if (state_.free_chunks >= kMaxChunks) return false;
    state_.free_chunks++;
    state_.free_bytes += bytes;
    return true;
  }

  void WalkList(uint64_t list, uint64_t at) {
    for (uint64_t before = list; at != list;) {
      std::optional<Chunk> chunk = CanBeChunk(at) ? memory_.Get<Chunk>(at) : std::nullopt;
      const bool sound = chunk.has_value() && chunk->previous == before && (chunk->size & kSizeMask) >= kSmallestChunk;
      if (!sound || !Count(chunk->size & kSizeMask)) {
        state_.whole = false;
        return;
      }
      before = at;
      at = chunk->next;
    }
  }

  // Singly linked; since glibc 2.32 the link is mangled with its own address.
  void WalkFastList(uint64_t at, uint64_t bytes) {
    while (at != 0) {
      std::optional<Chunk> chunk = CanBeChunk(at) ? memory_.Get<Chunk>(at) : std::nullopt;
      if (!chunk.has_value() || (chunk->size & kSizeMask) != bytes || !Count(bytes)) {
        state_.whole = false;
        return;
      }
      const uint64_t unmangled = chunk->next ^ ((at + kChunkHeader) >> 12);
      at = unmangled == 0 || CanBeChunk(unmangled) ? unmangled : chunk->next;
    }
  }

  const TargetMemory& memory_;
  const std::vector<MemoryArea>& areas_;
  AllocatorState state_;
};

}  // namespace

AllocatorState ReadAllocatorState(const TargetMemory& memory, const std::vector<MemoryArea>& areas) {
  return Glibc(memory, areas).Read();
}

}  // namespace cadastre
