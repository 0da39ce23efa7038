#include "interposer/live_table.h"

#include <string.h>

#include "interposer/free_filter.h"
#include "interposer/private_memory.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"

namespace cadastre {

uint8_t g_free_filter[1 << kFilterBits];
namespace {

using format::LiveRecord;

constexpr int kEntries = 5;
constexpr int kProbes = 8;
constexpr int kMaxLevels = 13;          // 64 * 4^12 buckets are as many as a 32-bit slot can need
constexpr uint32_t kFirstBuckets = 64;  // 4 KiB: one page
constexpr uint64_t BucketsOf(uint32_t level) { return static_cast<uint64_t>(kFirstBuckets) << 2 * level; }

struct Bucket {
  uint64_t address[kEntries];  // 0 = empty
  uint32_t slot[kEntries];
  uint32_t passed;  // live entries whose way led over this bucket
};
static_assert(sizeof(Bucket) == 64, "one cache line");

Bucket* level_begin[kMaxLevels];
uint32_t level_live[kMaxLevels];  // entries in use, or nearly so; at the half the next level is opened
uint32_t level_count;             // reserved levels
uint32_t levels_used;             // levels that ever held an entry

// Free slots: stacks threaded through private memory. head = {change counter, slot + 1}: the counter defeats ABA.
struct alignas(64) Shard {
  uint64_t free_head;
};
Shard shards[kLiveShards];
uint32_t* next_free;
uint32_t fresh_slot;  // slots from here on were never used

// Where an address belongs: its place among units of 16 bytes. Neighbouring pages of the program's memory have
// neighbouring places (in runs of 16 MiB), so that blocks that lie together are found together, in few cache lines and
// few pages, and a dense heap fills the index evenly. Which of a page's 256 places an address has differs from page to
// page: blocks that all lie at the start of one do not meet.
uint64_t PlaceOf(uint64_t address) {
  constexpr uint64_t kMultiplier = 0xff51afd7ed558ccdull;  // of MurmurHash3's finalizer
  const uint64_t page = address >> 12;
  const uint64_t run = (page >> 12) * kMultiplier >> 32;
  return (page ^ run) << 8 | ((address >> 4 ^ page * kMultiplier >> 56) & 255);
}

// A bucket for four places.
uint64_t HomeOf(uint64_t place) { return place >> 2; }

// The filter behind g_free_filter, for what that one lets through once there are thousands of live samples: a search in
// vain costs a cache line for each level. One counter a place, as those count.
constexpr uint64_t kMostPlaces = 1 << 20, kFewestPlaces = 4096;
uint8_t* place_filter;
uint64_t place_mask;

// As many as 16 GiB of live memory give samples, 32 Ki at the usual interval: each new sample touches another page of a
// larger one.
uint64_t PlacesFor(uint64_t interval_bytes) {
  constexpr uint64_t kLiveBytes = 16ull << 30;
  uint64_t places = kMostPlaces;
  while (places > kFewestPlaces && interval_bytes > kLiveBytes / places) places /= 2;
  return places;
}

uint8_t* PlaceCounter(uint64_t place) { return &place_filter[place & place_mask]; }

bool MayContainPlace(uint64_t place) { return __atomic_load_n(PlaceCounter(place), __ATOMIC_RELAXED) != 0; }

bool TakeFree(uint64_t* free_head, uint32_t* slot) {
  uint64_t head = __atomic_load_n(free_head, __ATOMIC_ACQUIRE);
  while ((head & 0xffffffff) != 0) {
    uint32_t top = static_cast<uint32_t>(head) - 1;
    uint64_t next = __atomic_load_n(&next_free[top], __ATOMIC_RELAXED);
    uint64_t changed = ((head >> 32) + 1) << 32 | next;
    if (__atomic_compare_exchange_n(free_head, &head, changed, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      *slot = top;
      return true;
    }
  }
  return false;
}

void PrefetchSlot(uint32_t slot) {
  __builtin_prefetch(&next_free[slot], 1);
  __builtin_prefetch(&g_profile.live[slot], 1);
  __builtin_prefetch(reinterpret_cast<const char*>(&g_profile.live[slot + 1]) - 1, 1);  // it may lie in two lines
}

bool TakeSlot(uint32_t shard, uint32_t* slot) {
  for (uint32_t i = 0; i < kLiveShards; i++) {
    if (TakeFree(&shards[(shard + i) % kLiveShards].free_head, slot)) return true;
  }
  if (__atomic_load_n(&fresh_slot, __ATOMIC_RELAXED) >= g_profile.live_capacity) return false;
  uint32_t fresh = __atomic_fetch_add(&fresh_slot, 1, __ATOMIC_RELAXED);
  if (fresh >= g_profile.live_capacity) return false;
  if (!ProfileEnsure(&g_profile.live[fresh], sizeof(LiveRecord))) return false;
  *slot = fresh;
  return true;
}

void GiveSlot(uint32_t shard, uint32_t slot) {
  uint64_t* free_head = &shards[shard % kLiveShards].free_head;
  uint64_t head = __atomic_load_n(free_head, __ATOMIC_ACQUIRE);
  uint64_t changed;
  do {
    __atomic_store_n(&next_free[slot], static_cast<uint32_t>(head), __ATOMIC_RELAXED);
    changed = ((head >> 32) + 1) << 32 | (slot + 1);
  } while (!__atomic_compare_exchange_n(free_head, &head, changed, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

template <typename T>
T Load(const T* from) {
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
template <typename T>
void Store(T* to, T value) {
  __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

void WriteRecord(uint32_t slot, const LiveSampleData& sample) {
  LiveRecord* record = &g_profile.live[slot];
  uint32_t generation = __atomic_load_n(&record->state, __ATOMIC_RELAXED) & ~format::kStateMask;
  // An exchange, not a store: no field may be written before it is visible that a writer is inside. (A fence would be
  // cheaper; ThreadSanitizer does not know fences.)
  __atomic_exchange_n(&record->state, generation | format::kWriting, __ATOMIC_ACQ_REL);
  // Atomic, because a thread that thins may be looking.
  Store(&record->site, sample.site);
  Store(&record->address, sample.address);
  Store(&record->size, sample.size);
  Store(&record->weight, sample.weight);
  Store(&record->time_ns, sample.time_ns);
  Store(&record->thread, sample.thread);
  Store(&record->context, sample.context);
  __atomic_store_n(&record->state, generation | format::kReady, __ATOMIC_RELEASE);
}

void ReadRecord(uint32_t slot, LiveSampleData* out) {
  const LiveRecord* record = &g_profile.live[slot];
  *out = {Load(&record->address), Load(&record->size),   Load(&record->weight), Load(&record->time_ns),
          Load(&record->site),    Load(&record->thread), Load(&record->context)};
  // Others may write to the file: what it says is no index before it is looked at.
  if (out->site >= g_profile.site_capacity) out->site = format::kSiteOverflow;
}

void EraseRecord(uint32_t slot) {
  LiveRecord* record = &g_profile.live[slot];
  uint32_t state = __atomic_load_n(&record->state, __ATOMIC_RELAXED);
  // The next generation, so that a reader which copied the old fields sees that they are no longer valid.
  __atomic_store_n(&record->state, (state & ~format::kStateMask) + (format::kStateMask + 1), __ATOMIC_RELEASE);
}

Bucket* BucketAt(uint32_t level, uint64_t hash, int probe) {
  return &level_begin[level][(hash + static_cast<uint64_t>(probe)) & (BucketsOf(level) - 1)];
}

void Pass(uint32_t level, uint64_t hash, int probes, int delta) {
  for (int probe = 0; probe < probes; probe++) {
    __atomic_fetch_add(&BucketAt(level, hash, probe)->passed, static_cast<uint32_t>(delta), __ATOMIC_ACQ_REL);
  }
}

// In a large table one address in eight counts for all, always the same ones: how full it is need not be known exactly
// (at 100,000 entries within 1 %), and a word that every thread writes for every sample is dear.
constexpr uint32_t kLargeTable = 1 << 17;
uint32_t counted_for = 1;  // 1 or 8

void CountInLevel(uint32_t level, uint64_t address, int delta) {
  if ((address * 0x9e3779b97f4a7c15ull >> 61 & (counted_for - 1)) != 0) return;
  __atomic_fetch_add(&level_live[level], static_cast<uint32_t>(delta) * counted_for, __ATOMIC_RELAXED);
}

bool InsertInLevel(uint32_t level, uint64_t hash, uint64_t address, uint32_t slot) {
  for (int probe = 0; probe < kProbes; probe++) {
    Bucket* bucket = BucketAt(level, hash, probe);
    for (int i = 0; i < kEntries; i++) {
      uint64_t empty = 0;
      if (__atomic_load_n(&bucket->address[i], __ATOMIC_RELAXED) != 0) continue;
      Pass(level, hash, probe, +1);
      if (__atomic_compare_exchange_n(&bucket->address[i], &empty, address, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED)) {
        __atomic_store_n(&bucket->slot[i], slot, __ATOMIC_RELEASE);
        CountInLevel(level, address, +1);
        return true;
      }
      Pass(level, hash, probe, -1);
    }
  }
  return false;
}

bool HasRoom(uint32_t level) {
  return __atomic_load_n(&level_live[level], __ATOMIC_RELAXED) <= BucketsOf(level) * kEntries / 2;
}

// The largest level in use comes first, here and in a search; once it is half full, the next one is opened. Smaller
// ones take what finds no place near its home, and otherwise empty themselves as blocks are freed.
bool InsertInIndex(uint64_t hash, uint64_t address, uint32_t slot) {
  uint32_t used = __atomic_load_n(&levels_used, __ATOMIC_ACQUIRE);
  while (used < level_count && (used == 0 || !HasRoom(used - 1))) {
    if (__atomic_compare_exchange_n(&levels_used, &used, used + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) used++;
  }
  for (uint32_t level = used; level-- > 0;) {
    if (InsertInLevel(level, hash, address, slot)) return true;
  }
  for (; used < level_count; used++) {
    uint32_t seen = used;
    __atomic_compare_exchange_n(&levels_used, &seen, used + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (InsertInLevel(used, hash, address, slot)) return true;
  }
  return false;
}

constexpr uint32_t kAnySlot = ~0u;

// Takes the entry of `address` out, if it leads to `wanted`.
bool RemoveInLevel(uint32_t level, uint64_t hash, uint64_t address, uint32_t wanted, uint32_t* slot) {
  for (int probe = 0; probe < kProbes; probe++) {
    Bucket* bucket = BucketAt(level, hash, probe);
    for (int i = 0; i < kEntries; i++) {
      uint64_t expected = address;
      if (__atomic_load_n(&bucket->address[i], __ATOMIC_ACQUIRE) != address) continue;
      uint32_t found = __atomic_load_n(&bucket->slot[i], __ATOMIC_ACQUIRE);
      if (wanted != kAnySlot && found != wanted) continue;
      PrefetchSlot(found);
      // A free and a thread that thins may race here, and two frees of a broken program; one of them wins.
      if (!__atomic_compare_exchange_n(&bucket->address[i], &expected, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        continue;
      Pass(level, hash, probe, -1);
      CountInLevel(level, address, -1);
      *slot = found;
      return true;
    }
    if (__atomic_load_n(&bucket->passed, __ATOMIC_ACQUIRE) == 0) return false;
  }
  return false;
}

}  // namespace

bool LiveTableInit(uint32_t slots, uint64_t interval_bytes) {
  next_free = ReserveMemory<uint32_t>(static_cast<uint64_t>(slots) * sizeof(uint32_t));
  const uint64_t places = PlacesFor(interval_bytes);
  place_filter = ReserveMemory<uint8_t>(places);
  place_mask = places - 1;
  if (next_free == nullptr || place_filter == nullptr) return false;
  if (interval_bytes <= 1) FilterSaturate();
  counted_for = slots >= kLargeTable ? 8 : 1;
  // Levels until their entries together hold every slot twice; fewer where there is no room for all.
  uint64_t buckets = 0;
  while (level_count < kMaxLevels && buckets * kEntries < static_cast<uint64_t>(slots) * 2)
    buckets += BucketsOf(level_count++);
  Bucket* begin = nullptr;
  while (level_count > 0 && (begin = ReserveMemory<Bucket>(buckets * sizeof(Bucket))) == nullptr)
    buckets -= BucketsOf(--level_count);
  for (uint32_t level = 0; level < level_count; begin += BucketsOf(level++)) level_begin[level] = begin;
  return level_count > 0;
}

void LivePrefetch(uint64_t address) {
  const uint64_t place = PlaceOf(address);
  __builtin_prefetch(PlaceCounter(place), 1);
  const uint32_t used = __atomic_load_n(&levels_used, __ATOMIC_RELAXED);
  if (used > 0) __builtin_prefetch(BucketAt(used - 1, HomeOf(place), 0), 1);
}

void LivePrefetchSlot(uint32_t shard) {
  const auto top = static_cast<uint32_t>(__atomic_load_n(&shards[shard % kLiveShards].free_head, __ATOMIC_RELAXED));
  if (top != 0) PrefetchSlot(top - 1);
}

namespace {

bool TakeFromIndex(uint64_t address, uint32_t wanted, uint32_t* slot) {
  const uint64_t place = PlaceOf(address);
  if (!MayContainPlace(place)) return false;
  const uint64_t hash = HomeOf(place);
  // Large levels hold most entries, so they are asked first.
  for (uint32_t level = __atomic_load_n(&levels_used, __ATOMIC_ACQUIRE); level-- > 0;) {
    if (RemoveInLevel(level, hash, address, wanted, slot)) return true;
  }
  return false;
}

// The record is the caller's alone, but for a thread that is about to reweigh it: so the weight is taken, and what was
// taken counts.
void Release(uint32_t slot, uint32_t shard, LiveSampleData* removed) {
  ReadRecord(slot, removed);
  EraseRecord(slot);
  removed->weight = __atomic_exchange_n(&g_profile.live[slot].weight, 0, __ATOMIC_ACQ_REL);
  FilterRemove(removed->address);
  CounterRemove(PlaceCounter(PlaceOf(removed->address)));
  GiveSlot(shard, slot);
}

}  // namespace

bool LiveRemove(uint64_t address, uint32_t shard, LiveSampleData* removed) {
  uint32_t slot;
  if (!TakeFromIndex(address, kAnySlot, &slot)) return false;
  Release(slot, shard, removed);
  return true;
}

uint32_t LiveSlotsUsed() {
  uint32_t used = __atomic_load_n(&fresh_slot, __ATOMIC_RELAXED);
  return used < g_profile.live_capacity ? used : g_profile.live_capacity;
}

bool LiveLook(uint32_t slot, LiveSlot* seen) {
  const LiveRecord* record = &g_profile.live[slot];
  seen->slot = slot;
  seen->state = Load(&record->state);
  if ((seen->state & format::kStateMask) != format::kReady) return false;
  ReadRecord(slot, &seen->sample);
  return Load(&record->state) == seen->state;  // the fields were read before, each with acquire
}

bool LiveReweigh(const LiveSlot& seen, uint64_t weight) {
  LiveRecord* record = &g_profile.live[seen.slot];
  uint64_t before = seen.sample.weight;
  if (!__atomic_compare_exchange_n(&record->weight, &before, weight, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  if (__atomic_load_n(&record->state, __ATOMIC_ACQUIRE) == seen.state) return true;
  // Freed meanwhile. If its free has not taken the weight yet, or if another record lies there by now, the weight goes
  // back; else the free has taken the new one.
  uint64_t ours = weight;
  return !__atomic_compare_exchange_n(&record->weight, &ours, seen.sample.weight, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED);
}

bool LiveForget(const LiveSlot& seen, uint32_t shard, LiveSampleData* removed) {
  uint32_t slot;
  // The entry is looked for with its slot, so what is taken is this record; or, once in a life of the universe, one
  // that came to the same address and slot since: forgotten in its place, and its like thinned as well.
  if (!TakeFromIndex(seen.sample.address, seen.slot, &slot)) return false;
  Release(slot, shard, removed);
  return true;
}

bool LiveInsert(const LiveSampleData& sample, uint32_t shard, bool* had_old, LiveSampleData* replaced) {
  *had_old =
      FilterMayContain(reinterpret_cast<const void*>(sample.address)) && LiveRemove(sample.address, shard, replaced);
  uint32_t slot;
  if (!TakeSlot(shard, &slot)) return false;
  WriteRecord(slot, sample);
  const uint64_t place = PlaceOf(sample.address);
  if (InsertInIndex(HomeOf(place), sample.address, slot)) {
    CounterAdd(PlaceCounter(place));
    FilterAdd(sample.address);
    return true;
  }
  EraseRecord(slot);
  GiveSlot(shard, slot);
  return false;
}

uint32_t LiveCount() {
  uint32_t count = 0;
  for (const uint32_t& live : level_live) count += __atomic_load_n(&live, __ATOMIC_RELAXED);
  return static_cast<int32_t>(count) < 0 ? 0 : count;
}

}  // namespace cadastre
