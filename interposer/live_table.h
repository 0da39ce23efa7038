// The live table: which sampled blocks are not freed yet.
//
// A sample lives in a slot of the profile (format::LiveRecord), where readers see it; a private index (live_index.h)
// finds the slot of an address. Nothing is ever read back from the file to find the way.
//
// Thread- and signal-safety: lock-free; safe in a signal handler that interrupts any of these functions.
#ifndef CADASTRE_INTERPOSER_LIVE_TABLE_H_
#define CADASTRE_INTERPOSER_LIVE_TABLE_H_

#include <stdint.h>

#include "interposer/live_index.h"

namespace cadastre {

struct LiveSampleData {
  uint64_t address, size, weight, time_ns;
  uint32_t site, thread;
  uint32_t context;  // string; format::LiveRecord::context
};

// What a sample gives to its site.
struct LiveShare {
  uint32_t site;
  uint64_t weight;
};

// Reserves private address space for a table of `slots` live samples, one in about interval_bytes of live memory (more
// are slower to look up). 1: every block is recorded, so that the filter that free asks would always say yes; it does,
// and is not kept up to date; and threads that call with a shard of 1 to `threads`, each with one that is nobody
// else's, keep the free slot that they gave last for themselves. False: no memory.
bool LiveTableInit(uint32_t slots, uint64_t interval_bytes, uint32_t threads = 0);

// Free slots are kept in kLiveShards lists, so that threads on different processors do not pass one cache line to and
// fro: a thread takes and gives by its own one, any number modulo kLiveShards, and takes from others what it lacks.
inline constexpr uint32_t kLiveShards = 16;

// What LiveInsert of this address will touch, and the slot that the next one of this shard will take, on their way into
// the cache: they lie far apart, and a caller has other things to do first.
LivePlace LivePrefetch(uint64_t address, uint32_t shard);

// Likewise for LiveRemove, the record too.
LivePlace LivePrefetchRecord(uint64_t address);

// place: from LivePrefetch. False: no slot or no index room left (the caller counts the loss). An old record at the
// same address (its free was not seen) is replaced: *replaced is filled and true is in *had_old.
bool LiveInsert(const LiveSampleData& sample, LivePlace place, uint32_t shard, bool* had_old, LiveSampleData* replaced);
inline bool LiveInsert(const LiveSampleData& sample, uint32_t shard, bool* had_old, LiveSampleData* replaced) {
  return LiveInsert(sample, LiveIndexPlaceOf(sample.address), shard, had_old, replaced);
}

// Takes the record of `address` out. place: from either of the above. False if there is none. Who wants its share alone
// does not touch the rest, which often lies in a cache line of its own.
bool LiveRemove(uint64_t address, LivePlace place, uint32_t shard, LiveShare* share);
bool LiveRemove(uint64_t address, LivePlace place, uint32_t shard, LiveSampleData* removed);
template <typename Removed>
bool LiveRemove(uint64_t address, uint32_t shard, Removed* removed) {
  return LiveRemove(address, LiveIndexFind(address), shard, removed);
}

// For thinning (live_thinning.h). A record that was seen in a slot; its block may be freed at any moment, by a thread
// that waits for nobody. Reweigh and Forget do nothing if it is gone by then. Forget may be called with any shard.
struct LiveSlot {
  LiveSampleData sample;
  uint32_t slot, state;
};
uint32_t LiveSlotsUsed();  // slots from here on were never used
bool LiveLook(uint32_t slot, LiveSlot* seen);
bool LiveReweigh(const LiveSlot& seen, uint64_t weight);  // true: the record had, or its free took, the new weight
bool LiveForget(const LiveSlot& seen, uint32_t shard, LiveShare* share);

// Slots in use, for the "memory fills" rule: within some 1 % in tables of more than 130,000 slots, and exact in small
// ones; a sum that moves while it is taken.
uint32_t LiveCount();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_LIVE_TABLE_H_
