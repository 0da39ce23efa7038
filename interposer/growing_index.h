// An index from a hash to the number of a record that lies elsewhere, for tables that never forget.
//
// Levels, each four times as large as the one before, in one reserved range; a level is an array of buckets of one
// cache line, eight slots that fill from the left. An entry lies in the first level whose bucket for its hash had room,
// in the last level also in a bucket behind. Nothing moves and nothing is taken out, so an empty slot ends a search,
// and a process with few entries touches few pages.
// Cost: a look at one cache line for each level that the entries fill; address space of 11 to 43 bytes an entry of the
// capacity, resident as far as used.
// Thread- and signal-safety: lock-free after Init; an entry is one word, set by one compare-and-swap. Of two threads
// that bring an equal record at once both find the same empty slot, so one of them finds the other's entry there.
// Errors: FindOrAdd yields 0 where there is no room.
//
// Example:
//   GrowingIndex index;                                   // zero bytes are an index without room
//   index.Init(capacity);
//   uint32_t made = 0;
//   uint32_t number = index.FindOrAdd(hash, [&](uint32_t n) { return IsEqual(records[n]); },
//                                     [&] { return made = WriteRecord(); });
//   if (made != 0 && made != number) GiveUp(made);        // another thread was faster
#ifndef CADASTRE_INTERPOSER_GROWING_INDEX_H_
#define CADASTRE_INTERPOSER_GROWING_INDEX_H_

#include <stdint.h>

#include "interposer/private_memory.h"

namespace cadastre {

class GrowingIndex {
 public:
  constexpr GrowingIndex() = default;
  GrowingIndex(const GrowingIndex&) = delete;
  GrowingIndex& operator=(const GrowingIndex&) = delete;

  // Room for `capacity` entries. False: no memory. Before other threads use it.
  bool Init(uint64_t capacity) {
    uint64_t levels = 1, slots = kFirstSlots;
    while (SlotsOf(levels - 1) < 2 * capacity) slots += SlotsOf(levels++);
    slots_ = ReserveMemory<uint64_t>(slots * sizeof(uint64_t));
    if (slots_ == nullptr) return false;
    levels_ = levels;
    return true;
  }

  // The number that was added for this hash and of which equal(number) is true; 0 = there is none.
  template <typename Equal>
  uint32_t Find(uint64_t hash, Equal equal) const {
    uint64_t* empty;
    return Search(hash, equal, &empty);
  }

  // The same, but make() is asked for the number of a new record, at most once. 0: no room here, or make() yields 0.
  template <typename Equal, typename Make>
  uint32_t FindOrAdd(uint64_t hash, Equal equal, Make make) {
    uint32_t made = 0;
    for (;;) {
      uint64_t* empty;
      const uint32_t known = Search(hash, equal, &empty);
      if (known != 0 || empty == nullptr) return known;
      if (made == 0) made = make();
      if (made == 0) return 0;
      uint64_t expected = 0;
      const uint64_t entry = (hash & ~kNumber) | made;
      if (__atomic_compare_exchange_n(empty, &expected, entry, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        NoteUsed(static_cast<uint64_t>(empty - slots_));
        return made;
      }
    }
  }

 private:
  // A slot: upper half of the hash, and the number; 0 = empty.
  static constexpr uint64_t kNumber = 0xffffffff;
  static constexpr uint64_t kBucketSlots = 8;
  static constexpr uint64_t kFirstSlots = 4096 / sizeof(uint64_t);

  static constexpr uint64_t SlotsOf(uint64_t level) { return kFirstSlots << (2 * level); }

  // Each level is another cache line, and in a large index each is a miss: those that have entries are fetched side by
  // side. The first ones are small, and stay in the cache.
  void Prefetch(uint64_t hash) const {
    uint64_t* level_slots = slots_ + SlotsOf(0) + SlotsOf(1);
    const uint64_t used = __atomic_load_n(&used_, __ATOMIC_RELAXED);
    for (uint64_t level = 2; level < used; level_slots += SlotsOf(level++))
      __builtin_prefetch(&level_slots[hash & (SlotsOf(level) - 1)]);
  }

  // An entry has been added at slots_[place].
  void NoteUsed(uint64_t place) {
    uint64_t level = 0;
    for (uint64_t end = SlotsOf(0); place >= end; end += SlotsOf(level)) level++;
    // A hint: of two threads that bring a new level each the smaller one may stay.
    if (level >= __atomic_load_n(&used_, __ATOMIC_RELAXED)) __atomic_store_n(&used_, level + 1, __ATOMIC_RELAXED);
  }

  // 0: not there; *empty is where it would go, nullptr = there is no room.
  template <typename Equal>
  uint32_t Search(uint64_t hash, Equal equal, uint64_t** empty) const {
    *empty = nullptr;
    Prefetch(hash);
    uint64_t* level_slots = slots_;
    for (uint64_t level = 0; level < levels_; level_slots += SlotsOf(level++)) {
      const uint64_t mask = SlotsOf(level) - 1;
      const uint64_t first = hash & mask & ~(kBucketSlots - 1);
      const uint64_t probes = level + 1 < levels_ ? kBucketSlots : SlotsOf(level);
      for (uint64_t probe = 0; probe < probes; probe++) {
        uint64_t* slot = &level_slots[(first + probe) & mask];
        const uint64_t entry = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (entry == 0) {
          *empty = slot;
          return 0;
        }
        if (((entry ^ hash) & ~kNumber) == 0 && equal(static_cast<uint32_t>(entry & kNumber)))
          return static_cast<uint32_t>(entry & kNumber);
      }
    }
    return 0;
  }

  uint64_t* slots_ = nullptr;
  uint64_t levels_ = 0;
  uint64_t used_ = 0;  // levels that have an entry
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_GROWING_INDEX_H_
