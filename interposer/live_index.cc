#include "interposer/live_index.h"

#include "interposer/block_slots.h"
#include "interposer/free_filter.h"
#include "interposer/private_memory.h"

namespace cadastre {
namespace {

// Where every block is recorded these come first, and the levels have what finds no word there.
BlockSlots block_slots;
uint32_t live_in_blocks;

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
// vain costs a cache line for each level. One counter a place, as those count. The first level, one page, is asked
// without it: a process of a few samples would touch a page of counters for each.
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

void Count(uint32_t* live, uint64_t address, int delta) {
  if ((address * 0x9e3779b97f4a7c15ull >> 61 & (counted_for - 1)) != 0) return;
  __atomic_fetch_add(live, static_cast<uint32_t>(delta) * counted_for, __ATOMIC_RELAXED);
}

// No block's address: of an entry that somebody is about to fill or to empty. So nobody takes an address for another
// slot than the one that came with it, however often the block is freed and allocated again meanwhile.
constexpr uint64_t kClaimed = 1;

bool InsertInLevel(uint32_t level, uint64_t hash, uint64_t address, uint32_t slot) {
  for (int probe = 0; probe < kProbes; probe++) {
    Bucket* bucket = BucketAt(level, hash, probe);
    for (int i = 0; i < kEntries; i++) {
      uint64_t empty = 0;
      if (__atomic_load_n(&bucket->address[i], __ATOMIC_RELAXED) != 0) continue;
      Pass(level, hash, probe, +1);
      if (__atomic_compare_exchange_n(&bucket->address[i], &empty, kClaimed, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED)) {
        __atomic_store_n(&bucket->slot[i], slot, __ATOMIC_RELAXED);
        __atomic_store_n(&bucket->address[i], address, __ATOMIC_RELEASE);
        Count(&level_live[level], address, +1);
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
bool InsertInLevels(uint64_t hash, uint64_t address, uint32_t slot, uint32_t* level) {
  uint32_t used = __atomic_load_n(&levels_used, __ATOMIC_ACQUIRE);
  while (used < level_count && (used == 0 || !HasRoom(used - 1))) {
    if (__atomic_compare_exchange_n(&levels_used, &used, used + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) used++;
  }
  for (*level = used; (*level)-- > 0;) {
    if (InsertInLevel(*level, hash, address, slot)) return true;
  }
  for (*level = used; *level < level_count; (*level)++) {
    uint32_t seen = *level;
    __atomic_compare_exchange_n(&levels_used, &seen, *level + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (InsertInLevel(*level, hash, address, slot)) return true;
  }
  return false;
}

// Takes the entry of `address` out, if it leads to `wanted`.
bool RemoveInLevel(uint32_t level, uint64_t hash, uint64_t address, uint32_t wanted, uint32_t* slot) {
  for (int probe = 0; probe < kProbes; probe++) {
    Bucket* bucket = BucketAt(level, hash, probe);
    for (int i = 0; i < kEntries; i++) {
      uint64_t expected = address;
      if (__atomic_load_n(&bucket->address[i], __ATOMIC_ACQUIRE) != address) continue;
      if (wanted != kAnySlot && __atomic_load_n(&bucket->slot[i], __ATOMIC_RELAXED) != wanted) continue;
      // A free and a thread that thins may race here, and two frees of a broken program; one of them wins.
      if (!__atomic_compare_exchange_n(&bucket->address[i], &expected, kClaimed, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED))
        continue;
      const uint32_t found = __atomic_load_n(&bucket->slot[i], __ATOMIC_RELAXED);
      if (wanted != kAnySlot && found != wanted) {  // another record came to this entry since
        __atomic_store_n(&bucket->address[i], address, __ATOMIC_RELEASE);
        continue;
      }
      __atomic_store_n(&bucket->address[i], 0, __ATOMIC_RELEASE);
      Pass(level, hash, probe, -1);
      Count(&level_live[level], address, -1);
      *slot = found;
      return true;
    }
    if (__atomic_load_n(&bucket->passed, __ATOMIC_ACQUIRE) == 0) return false;
  }
  return false;
}

// False: it leads to another slot than `wanted`, or nowhere.
bool TakeWord(uint32_t* word, uint64_t address, uint32_t wanted, uint32_t* slot) {
  uint32_t found = __atomic_load_n(word, __ATOMIC_ACQUIRE);
  if (found == 0 || (wanted != kAnySlot && found != wanted + 1)) return false;
  // As above.
  if (!__atomic_compare_exchange_n(word, &found, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return false;
  Count(&live_in_blocks, address, -1);
  *slot = found - 1;
  return true;
}

}  // namespace

bool LiveIndexInit(uint32_t slots, uint64_t interval_bytes) {
  const uint64_t places = PlacesFor(interval_bytes);
  place_filter = ReserveMemory<uint8_t>(places);
  place_mask = places - 1;
  if (place_filter == nullptr) return false;
  // A third of what the records take: words for 64 of the program's bytes a record, two of the smallest blocks.
  if (interval_bytes <= 1) block_slots.Init(static_cast<uint64_t>(slots) * 16);
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

namespace {

LivePlace Prefetched(uint32_t* word, uint64_t address) {
  if (word != nullptr) {
    __builtin_prefetch(word, 1);
    return {word};
  }
  const uint64_t place = PlaceOf(address);
  const uint32_t used = __atomic_load_n(&levels_used, __ATOMIC_RELAXED);
  if (used > 1) __builtin_prefetch(PlaceCounter(place), 1);
  if (used > 0) __builtin_prefetch(BucketAt(used - 1, HomeOf(place), 0), 1);
  return {nullptr};
}

}  // namespace

LivePlace LiveIndexPlaceOf(uint64_t address) { return Prefetched(block_slots.FindOrMake(address), address); }
LivePlace LiveIndexFind(uint64_t address) { return Prefetched(block_slots.Find(address), address); }

bool LiveIndexPeek(LivePlace place, uint32_t* slot) {
  if (place.word == nullptr) return false;
  *slot = __atomic_load_n(place.word, __ATOMIC_RELAXED) - 1;
  return *slot != kAnySlot;
}

bool LiveIndexInsert(LivePlace found, uint64_t address, uint32_t slot) {
  if (found.word != nullptr) {
    __atomic_store_n(found.word, slot + 1, __ATOMIC_RELEASE);
    Count(&live_in_blocks, address, +1);
    return true;
  }
  const uint64_t place = PlaceOf(address);
  uint32_t level;
  if (!InsertInLevels(HomeOf(place), address, slot, &level)) return false;
  if (level > 0) CounterAdd(PlaceCounter(place));
  return true;
}

bool LiveIndexTake(LivePlace found, uint64_t address, uint32_t wanted, uint32_t* slot) {
  if (found.word != nullptr) return TakeWord(found.word, address, wanted, slot);
  const uint64_t place = PlaceOf(address);
  const uint64_t hash = HomeOf(place);
  const uint32_t used = __atomic_load_n(&levels_used, __ATOMIC_ACQUIRE);
  // Large levels hold most entries, so they are asked first.
  if (used > 1 && MayContainPlace(place)) {
    for (uint32_t level = used - 1; level > 0; level--) {
      if (!RemoveInLevel(level, hash, address, wanted, slot)) continue;
      CounterRemove(PlaceCounter(place));
      return true;
    }
  }
  return used > 0 && RemoveInLevel(0, hash, address, wanted, slot);
}

uint32_t LiveIndexCount() {
  uint32_t count = __atomic_load_n(&live_in_blocks, __ATOMIC_RELAXED);
  for (const uint32_t& live : level_live) count += __atomic_load_n(&live, __ATOMIC_RELAXED);
  return static_cast<int32_t>(count) < 0 ? 0 : count;
}

}  // namespace cadastre
