#include "interposer/live_table.h"

#include <string.h>

#include "interposer/free_filter.h"
#include "interposer/live_index.h"
#include "interposer/private_memory.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"
#include "interposer/site_table.h"

namespace cadastre {

alignas(4096) uint8_t g_free_filter[1 << kFilterBits];
namespace {

using format::LiveRecord;

// Free slots: stacks threaded through private memory. head = {change counter, slot + 1}: the counter defeats ABA.
struct alignas(64) Shard {
  uint64_t free_head;
};
Shard shards[kLiveShards];
uint32_t* next_free;
uint32_t fresh_slot;  // slots from here on were never used

// The slot that a thread gave last, which it takes again without a locked instruction: slot + 1, 0 = none. Nobody else
// touches it, and a signal handler of its own finds it before or after a change, for that is one instruction.
struct alignas(64) Own {
  uint32_t slot;
};
Own* owns;
uint32_t own_count;

// nullptr: it keeps none.
uint32_t* OwnOf(uint32_t shard) { return shard - 1 < own_count ? &owns[shard - 1].slot : nullptr; }

uint32_t ExchangeOwn(uint32_t* own, uint32_t value) {
  uint32_t found = __atomic_load_n(own, __ATOMIC_RELAXED);
#ifdef __SANITIZE_THREAD__
  while (!__atomic_compare_exchange_n(own, &found, value, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
#else
  bool done;
  do {
    asm volatile("cmpxchgl %3, %1" : "=@ccz"(done), "+m"(*own), "+a"(found) : "r"(value) : "memory");
  } while (!done);
#endif
  return found;
}

void PrefetchSlot(uint32_t slot) {
  __builtin_prefetch(&next_free[slot], 1);
  __builtin_prefetch(&g_profile.live[slot], 1);
  __builtin_prefetch(reinterpret_cast<const char*>(&g_profile.live[slot + 1]) - 1, 1);  // it may lie in two lines
}

bool TakeFree(uint64_t* free_head, uint32_t* slot) {
  uint64_t head = __atomic_load_n(free_head, __ATOMIC_ACQUIRE);
  while ((head & 0xffffffff) != 0) {
    uint32_t top = static_cast<uint32_t>(head) - 1;
    uint64_t next = __atomic_load_n(&next_free[top], __ATOMIC_RELAXED);
    uint64_t changed = ((head >> 32) + 1) << 32 | next;
    if (__atomic_compare_exchange_n(free_head, &head, changed, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      *slot = top;
      if (next != 0) PrefetchSlot(static_cast<uint32_t>(next) - 1);  // for the next event
      return true;
    }
  }
  return false;
}

bool TakeSlot(uint32_t shard, uint32_t* slot) {
  uint32_t* own = OwnOf(shard);
  if (own != nullptr && __atomic_load_n(own, __ATOMIC_RELAXED) != 0) {
    if (const uint32_t found = ExchangeOwn(own, 0); found != 0) {
      *slot = found - 1;
      return true;
    }
  }
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

// own: where the calling thread keeps a slot, if it does.
void GiveSlot(uint32_t* own, uint32_t shard, uint32_t slot) {
  if (own != nullptr) {
    const uint32_t older = ExchangeOwn(own, slot + 1);
    if (older == 0) return;
    slot = older - 1;
  }
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
  __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

void WriteRecord(uint32_t slot, const LiveSampleData& sample) {
  LiveRecord* record = &g_profile.live[slot];
  uint32_t generation = __atomic_load_n(&record->state, __ATOMIC_RELAXED) & ~format::kStateMask;
  // No field may be written before it is visible that a writer is inside: so each is a release, which on x86 is a plain
  // store. And atomic, because a thread that thins may be looking.
  __atomic_store_n(&record->state, generation | format::kWriting, __ATOMIC_RELAXED);
  Store(&record->site, sample.site);
  Store(&record->address, sample.address);
  Store(&record->size, sample.size);
  Store(&record->weight, sample.weight);
  Store(&record->time_ns, sample.time_ns);
  Store(&record->thread, sample.thread);
  Store(&record->context, sample.context);
  __atomic_store_n(&record->state, generation | format::kReady, __ATOMIC_RELEASE);
}

// Others may write to the file: what it says is no index before it is looked at.
uint32_t ReadSite(const LiveRecord& record) {
  const uint32_t site = Load(&record.site);
  return site < g_profile.site_capacity ? site : format::kSiteOverflow;
}

void ReadRecord(const LiveRecord& record, LiveSampleData* out) {
  *out = {Load(&record.address), Load(&record.size),   Load(&record.weight), Load(&record.time_ns),
          ReadSite(record),      Load(&record.thread), Load(&record.context)};
}

void EraseRecord(uint32_t slot) {
  LiveRecord* record = &g_profile.live[slot];
  uint32_t state = __atomic_load_n(&record->state, __ATOMIC_RELAXED);
  // The next generation, so that a reader which copied the old fields sees that they are no longer valid.
  __atomic_store_n(&record->state, (state & ~format::kStateMask) + (format::kStateMask + 1), __ATOMIC_RELEASE);
}

}  // namespace

bool LiveTableInit(uint32_t slots, uint64_t interval_bytes, uint32_t threads) {
  next_free = ReserveMemory<uint32_t>(static_cast<uint64_t>(slots) * sizeof(uint32_t));
  if (next_free == nullptr || !LiveIndexInit(slots, interval_bytes)) return false;
  MakePresent(g_free_filter, sizeof(g_free_filter));
  if (interval_bytes > 1) return true;
  FilterSaturate();
  owns = ReserveMemory<Own>(static_cast<uint64_t>(threads) * sizeof(Own));
  own_count = owns != nullptr ? threads : 0;
  return true;
}

LivePlace LivePrefetch(uint64_t address, uint32_t shard) {
  const uint32_t* own = OwnOf(shard);
  uint32_t top = own != nullptr ? __atomic_load_n(own, __ATOMIC_RELAXED) : 0;
  if (top == 0) top = static_cast<uint32_t>(__atomic_load_n(&shards[shard % kLiveShards].free_head, __ATOMIC_RELAXED));
  if (top != 0) PrefetchSlot(top - 1);
  return LiveIndexPlaceOf(address);
}

namespace {

// The record is the caller's alone, but for a thread that is about to reweigh it: so the weight is taken, and what was
// taken counts.
LiveShare Release(uint32_t slot, uint64_t address, uint32_t* own, uint32_t shard) {
  LiveRecord* record = &g_profile.live[slot];
  LiveShare share = {ReadSite(*record), 0};
  SitePrefetch(share.site);  // before the locked instructions, which nothing passes
  EraseRecord(slot);
  share.weight = __atomic_exchange_n(&record->weight, 0, __ATOMIC_ACQ_REL);
  FilterRemove(address);
  GiveSlot(own, shard, slot);
  return share;
}

}  // namespace

LivePlace LivePrefetchRecord(uint64_t address) {
  const LivePlace place = LiveIndexFind(address);
  uint32_t slot;
  if (LiveIndexPeek(place, &slot)) PrefetchSlot(slot);
  return place;
}

bool LiveRemove(uint64_t address, LivePlace place, uint32_t shard, LiveShare* share) {
  uint32_t slot;
  if (!LiveIndexTake(place, address, kAnySlot, &slot)) return false;
  *share = Release(slot, address, OwnOf(shard), shard);
  return true;
}

bool LiveRemove(uint64_t address, LivePlace place, uint32_t shard, LiveSampleData* removed) {
  uint32_t slot;
  if (!LiveIndexTake(place, address, kAnySlot, &slot)) return false;
  ReadRecord(g_profile.live[slot], removed);
  removed->weight = Release(slot, address, OwnOf(shard), shard).weight;
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
  ReadRecord(*record, &seen->sample);
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

bool LiveForget(const LiveSlot& seen, uint32_t shard, LiveShare* share) {
  uint32_t slot;
  // The entry is looked for with its slot, so what is taken is this record; or, once in a life of the universe, one
  // that came to the same address and slot since: forgotten in its place, and its like thinned as well.
  if (!LiveIndexTake(LiveIndexFind(seen.sample.address), seen.sample.address, seen.slot, &slot)) return false;
  *share = Release(slot, seen.sample.address, nullptr, shard);
  return true;
}

bool LiveInsert(const LiveSampleData& sample, LivePlace place, uint32_t shard, bool* had_old,
                LiveSampleData* replaced) {
  uint32_t slot;
  const bool may_have_old = place.word != nullptr ? LiveIndexPeek(place, &slot)
                                                  : FilterMayContain(reinterpret_cast<const void*>(sample.address));
  *had_old = may_have_old && LiveRemove(sample.address, place, shard, replaced);
  if (!TakeSlot(shard, &slot)) return false;
  WriteRecord(slot, sample);
  if (LiveIndexInsert(place, sample.address, slot)) {
    FilterAdd(sample.address);
    return true;
  }
  EraseRecord(slot);
  GiveSlot(OwnOf(shard), shard, slot);
  return false;
}

uint32_t LiveCount() { return LiveIndexCount(); }

}  // namespace cadastre
