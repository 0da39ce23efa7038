#include "interposer/mapping_map.h"

#include "interposer/private_memory.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"

namespace cadastre {
namespace {

constexpr int kHeight = 10;  // with one node in four a level higher: a million ranges

struct Node {
  MappingRange range;
  uint64_t mark;
  uint32_t next[kHeight];  // 0 = end of the level
  int height;
};

// nodes[0] is the head of all levels: a range before all others.
Node* nodes;
uint32_t capacity;
uint32_t next_unused = 1;
uint32_t free_nodes;  // linked by next[0]
uint64_t height_seed = 0x9e3779b97f4a7c15ull;
int tallest = 1;  // of all nodes so far: the levels above it are empty

// The last node of each level that starts before an address.
using Path = uint32_t[kHeight];

void FindPath(uint64_t address, Path path) {
  uint32_t at = 0;
  for (int level = kHeight - 1; level >= tallest; level--) path[level] = 0;
  for (int level = tallest - 1; level >= 0; level--) {
    for (uint32_t next = nodes[at].next[level]; next != 0 && nodes[next].range.start < address;
         next = nodes[at].next[level]) {
      at = next;
    }
    path[level] = at;
  }
}

// A record is never seen half-changed as ready (profile_format.h, RecordState).
void Publish(uint32_t index) {
  format::MappingRecord* record = &g_profile.mappings[index];
  const uint32_t generation = (record->state | format::kStateMask) + 1;
  __atomic_exchange_n(&record->state, generation | format::kWriting, __ATOMIC_ACQUIRE);  // no store goes before it
  const MappingRange& range = nodes[index].range;
  record->start = range.start;
  record->end = range.end;
  record->time_ns = range.time_ns;
  record->site = range.site;
  record->thread = range.thread;
  record->flags = range.flags;
  __atomic_store_n(&record->state, generation | format::kReady, __ATOMIC_RELEASE);
}

uint32_t NewNode() {
  uint32_t index = free_nodes;
  if (index != 0) {
    free_nodes = nodes[index].next[0];
  } else {
    if (next_unused >= capacity || !ProfileEnsure(&g_profile.mappings[next_unused], sizeof(format::MappingRecord))) {
      __atomic_fetch_add(&g_profile.header->counters.mappings_full, 1, __ATOMIC_RELAXED);
      return 0;
    }
    index = next_unused++;
  }
  height_seed ^= height_seed << 13;
  height_seed ^= height_seed >> 7;
  height_seed ^= height_seed << 17;
  int height = 1;
  for (uint64_t bits = height_seed; height < kHeight && (bits & 3) == 0; bits >>= 2) height++;
  nodes[index].height = height;
  if (height > tallest) tallest = height;
  return index;
}

// `path` leads to the place.
void Link(uint32_t index, const Path path) {
  for (int level = 0; level < nodes[index].height; level++) {
    nodes[index].next[level] = nodes[path[level]].next[level];
    nodes[path[level]].next[level] = index;
  }
  Publish(index);
}

void Free(uint32_t index) {
  format::MappingRecord* record = &g_profile.mappings[index];
  __atomic_store_n(&record->state, (record->state | format::kStateMask) + 1, __ATOMIC_RELEASE);
  nodes[index].next[0] = free_nodes;
  free_nodes = index;
}

void Unlink(uint32_t index, const Path path) {
  for (int level = 0; level < nodes[index].height; level++) {
    nodes[path[level]].next[level] = nodes[index].next[level];
  }
  Free(index);
}

// The range `left`, which covers `address`, ends there and another begins, to whose place `path` leads. Where there is
// no room for that one it is forgotten.
void Split(uint32_t left, uint64_t address, const Path path) {
  const uint32_t right = NewNode();
  if (right != 0) {
    nodes[right].range = nodes[left].range;
    nodes[right].range.start = address;
    nodes[right].mark = nodes[left].mark;
  }
  nodes[left].range.end = address;
  Publish(left);
  if (right != 0) Link(right, path);
}

// From the place before `node` to the one behind it.
void StepOver(uint32_t node, Path path) {
  for (int level = 0; level < nodes[node].height; level++) path[level] = node;
}

// Splits what reaches over the ends, and visits what lies within, from the lowest on.
template <typename Visit>
void VisitWithin(uint64_t start, uint64_t end, Visit visit) {
  Path path;
  FindPath(start, path);
  if (start >= end) return;
  if (path[0] != 0 && nodes[path[0]].range.end > start) Split(path[0], start, path);
  for (uint32_t at = nodes[path[0]].next[0]; at != 0 && nodes[at].range.start < end; at = nodes[at].next[0]) {
    StepOver(at, path);
    if (nodes[at].range.end > end) Split(at, end, path);
    visit(at);
  }
}

bool SaysTheSame(const Node& a, const Node& b) {
  return a.range.site == b.range.site && a.range.thread == b.range.thread && a.range.flags == b.range.flags &&
         a.mark == b.mark;
}

// Two ranges that meet at `address` and say the same become one, as old as the lower one.
void JoinAt(uint64_t address) {
  Path path;
  FindPath(address, path);
  const uint32_t left = path[0], right = nodes[left].next[0];
  if (left == 0 || right == 0 || nodes[left].range.end != address || nodes[right].range.start != address ||
      !SaysTheSame(nodes[left], nodes[right])) {
    return;
  }
  nodes[left].range.end = nodes[right].range.end;
  Unlink(right, path);
  Publish(left);
}

// Nothing is left between `start` and `end`; `path` leads to start.
void Clear(uint64_t start, uint64_t end, Path path) {
  FindPath(start, path);
  if (start >= end) return;
  const uint32_t left = path[0];
  if (left != 0 && nodes[left].range.end > start) {
    // If it covers the end too, its rest stays; the path leads there as well, for nothing lies between.
    if (nodes[left].range.end > end) Split(left, end, path);
    nodes[left].range.end = start;
    Publish(left);
  }
  uint32_t at = nodes[left].next[0];
  for (; at != 0 && nodes[at].range.end <= end; at = nodes[left].next[0]) Unlink(at, path);
  if (at == 0 || nodes[at].range.start >= end) return;
  nodes[at].range.start = end;
  Publish(at);
}

// Would MappingProtect change anything?
bool HasOtherProtection(uint64_t start, uint64_t end, uint32_t protection) {
  Path path;
  FindPath(start + 1, path);
  uint32_t at = path[0] != 0 && nodes[path[0]].range.end > start ? path[0] : nodes[path[0]].next[0];
  for (; at != 0 && nodes[at].range.start < end; at = nodes[at].next[0]) {
    if (((nodes[at].range.flags ^ protection) & format::kMappingProtection) != 0) return true;
  }
  return false;
}

}  // namespace

bool MappingMapInit(uint32_t count) {
  nodes = ReserveMemory<Node>(count * sizeof(Node));
  capacity = count;
  return nodes != nullptr;
}

void MappingInsert(const MappingRange& range) {
  Path path;
  Clear(range.start, range.end, path);
  Node now = {};
  now.range = range;
  const uint32_t left = path[0], right = nodes[left].next[0];
  const bool joins_left = left != 0 && nodes[left].range.end == range.start && SaysTheSame(nodes[left], now);
  const bool joins_right = right != 0 && nodes[right].range.start == range.end && SaysTheSame(nodes[right], now);
  if (joins_left) {
    nodes[left].range.end = joins_right ? nodes[right].range.end : range.end;
    if (joins_right) Unlink(right, path);
    return Publish(left);
  }
  if (joins_right) {
    nodes[right].range.start = range.start;
    nodes[right].range.time_ns = range.time_ns;
    return Publish(right);
  }
  const uint32_t index = NewNode();
  if (index == 0) return;
  nodes[index].range = range;
  nodes[index].mark = 0;
  Link(index, path);
}

void MappingRemove(uint64_t start, uint64_t end) {
  Path path;
  Clear(start, end, path);
}

void MappingMark(uint64_t start, uint64_t end, uint64_t mark) {
  VisitWithin(start, end, [mark](uint32_t at) { nodes[at].mark = mark; });
}

bool MappingTakeMarked(uint64_t start, uint64_t end, uint64_t mark, MappingRange* taken) {
  Path path;
  FindPath(start, path);
  for (uint32_t at = nodes[path[0]].next[0]; at != 0 && nodes[at].range.start < end; at = nodes[at].next[0]) {
    if (nodes[at].mark == mark) {
      *taken = nodes[at].range;
      Unlink(at, path);
      return true;
    }
    StepOver(at, path);
  }
  return false;
}

void MappingRemoveMarked(uint64_t start, uint64_t end, uint64_t mark) {
  Path path;
  FindPath(start, path);
  uint32_t next;
  for (uint32_t at = nodes[path[0]].next[0]; at != 0 && nodes[at].range.start < end; at = next) {
    next = nodes[at].next[0];
    if (nodes[at].mark == mark) {
      Unlink(at, path);
    } else {
      StepOver(at, path);
    }
  }
}

void MappingProtect(uint64_t start, uint64_t end, uint32_t protection) {
  if (start >= end || !HasOtherProtection(start, end, protection)) return;
  VisitWithin(start, end, [protection](uint32_t at) {
    MappingRange* range = &nodes[at].range;
    const uint32_t flags = (range->flags & ~format::kMappingProtection) | (protection & format::kMappingProtection);
    if (flags == range->flags) return;
    range->flags = flags;
    Publish(at);
  });
  Path path;
  // From the end on: joining moves no boundary that is still to be looked at.
  JoinAt(end);
  for (uint64_t at = start;;) {
    JoinAt(at);
    FindPath(at + 1, path);  // the range that holds `at`, or the last one before it
    const uint32_t next = nodes[path[0]].next[0];
    if (next == 0 || nodes[next].range.start >= end) break;
    at = nodes[next].range.start;
  }
}

uint64_t MappingEndOfRun(uint64_t start, uint64_t end, uint32_t stop) {
  Path path;
  FindPath(start + 1, path);
  uint64_t at = start;
  for (uint32_t node = path[0]; node != 0 && nodes[node].range.start <= at && at < end; node = nodes[node].next[0]) {
    if (nodes[node].range.end <= at || (nodes[node].range.flags & stop) != 0) break;
    at = nodes[node].range.end;
  }
  return at < end ? at : end;
}

bool MappingFind(uint64_t address, MappingRange* found) {
  Path path;
  FindPath(address + 1, path);
  if (path[0] == 0 || nodes[path[0]].range.end <= address) return false;
  *found = nodes[path[0]].range;
  return true;
}

void MappingMapRepair() {
  // The lowest level is followed as long as it makes sense; the others and the free list are made anew from it. A node
  // whose height is not positive has not been met.
  for (uint32_t i = 1; i < next_unused; i++) nodes[i].height = -nodes[i].height;
  Path last = {};
  uint64_t end_before = 0;
  uint32_t next;
  for (uint32_t at = nodes[0].next[0]; at != 0 && at < next_unused && nodes[at].height < 0; at = next) {
    next = nodes[at].next[0];
    const MappingRange& range = nodes[at].range;
    if (range.start < end_before || range.start >= range.end) continue;
    end_before = range.end;
    nodes[at].height = -nodes[at].height;
    if (nodes[at].height > tallest) tallest = nodes[at].height;
    for (int level = 0; level < nodes[at].height; level++) {
      nodes[last[level]].next[level] = at;
      last[level] = at;
    }
    Publish(at);
  }
  for (int level = 0; level < kHeight; level++) nodes[last[level]].next[level] = 0;
  free_nodes = 0;
  for (uint32_t i = 1; i < next_unused; i++) {
    if (nodes[i].height > 0) continue;
    nodes[i].height = 0;
    Free(i);
  }
}

}  // namespace cadastre
