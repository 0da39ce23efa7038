// Which slot of the live table has the record of an address. Private memory: nothing is read back from the file.
//
// Levels of which each is four times as large as the one before, each an array of 64-byte buckets with 5 entries
// {address, slot}; a new entry goes into the largest level in use, near its home bucket, and once that is half full the
// next one is opened. So 1,000 live samples need less than 100 KiB, and growing never moves or locks anything. A bucket
// counts the entries that had to pass it (as F14 does): a search ends at the first bucket that nobody passed. Inserting
// counts up before placing, removing counts down after, and only the thread that owns a block searches for its address,
// so no entry can be missed.
//
//   level 1   [b0]...............[b255]   home = place of the address, then up to kProbes buckets further on
//   level 0   [b0][b1]...[b63]            has what found no room there, and what was put in before there was a level 1
//
// A second filter, of one byte a place, stands before all of it: a search in vain mostly ends there.
//
// Where every block is recorded, the slot stands in a word that is found by the address alone (block_slots.h).
//
// Thread- and signal-safety: lock-free; safe in a signal handler that interrupts any of these functions.
#ifndef CADASTRE_INTERPOSER_LIVE_INDEX_H_
#define CADASTRE_INTERPOSER_LIVE_INDEX_H_

#include <stdint.h>

namespace cadastre {

// As LiveTableInit. False: no memory.
bool LiveIndexInit(uint32_t slots, uint64_t interval_bytes);

// What is known of an address without a search. It stays true.
struct LivePlace {
  uint32_t* word;  // slot + 1, 0 = none; nullptr: it must be searched for
};

// For LiveIndexInsert, and for LiveIndexTake of what has been inserted. What they will touch is brought on its way into
// the cache.
LivePlace LiveIndexPlaceOf(uint64_t address);
LivePlace LiveIndexFind(uint64_t address);

// Where the address leads to, if its place says so.
bool LiveIndexPeek(LivePlace place, uint32_t* slot);

// The address leads to the slot from now on; it must lead to none before. False: no room.
bool LiveIndexInsert(LivePlace place, uint64_t address, uint32_t slot);

// It leads nowhere from now on, if it led to `wanted`: to that slot, or to any. False: it did not.
inline constexpr uint32_t kAnySlot = ~0u;
bool LiveIndexTake(LivePlace place, uint64_t address, uint32_t wanted, uint32_t* slot);

// As LiveCount.
uint32_t LiveIndexCount();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_LIVE_INDEX_H_
