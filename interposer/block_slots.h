// Where each block's live sample lies, for who records every block: one word for each 16 bytes of the program's memory,
// found by arithmetic. An allocator gives out multiples of 16, so no word has two blocks.
//
// The program's memory is seen in chunks of 1 MiB. A chunk that has a block takes a place in a small table of keys, and
// with it the words of the same number; it keeps both for ever, so what was found once is found again.
//
//   keys   [        | 0x7f01c | 0x5580a | ]        home = hash of the chunk's number, then up to kProbes - 1 further on
//   words  [ 256 KiB | 256 KiB | 256 KiB | ]       word of a block = (address - start of the chunk) / 16
//
// Against a hash table of addresses: one load and no search, and blocks that lie together are found together, 256 bytes
// of the program's memory in a cache line. Cost: a quarter of the program's memory that is in use, by pages (a page of
// words for 16 KiB); address space as Init says. A chunk that finds no place, an address that is no multiple of 16 or
// beyond 47 bits: Find yields nullptr, always for the same addresses, and who asks has another way.
// Thread- and signal-safety: lock-free; a place is taken by one compare-and-swap. Zero bytes are a map without room.
//
// Example:
//   BlockSlots slots;
//   slots.Init(64 << 20);
//   if (uint32_t* word = slots.FindOrMake(address)) __atomic_store_n(word, slot + 1, __ATOMIC_RELEASE);
//   uint32_t* word = slots.Find(address);                 // nullptr: nobody has made it
#ifndef CADASTRE_INTERPOSER_BLOCK_SLOTS_H_
#define CADASTRE_INTERPOSER_BLOCK_SLOTS_H_

#include <stdint.h>

#include "interposer/private_memory.h"

namespace cadastre {

class BlockSlots {
 public:
  constexpr BlockSlots() = default;
  BlockSlots(const BlockSlots&) = delete;
  BlockSlots& operator=(const BlockSlots&) = delete;

  // Takes at most `bytes` of address space. Without memory, or with less than a chunk needs, it has no room. Before
  // other threads use it.
  void Init(uint64_t bytes) {
    uint64_t chunks = bytes / (kWords * sizeof(uint32_t) + sizeof(uint32_t));
    if (chunks > kMostChunks) chunks = kMostChunks;
    if (chunks == 0) return;
    auto* memory = ReserveMemory<uint32_t>(chunks * (kWords + 1) * sizeof(uint32_t));
    if (memory == nullptr) return;
    words_ = memory;
    keys_ = memory + chunks * kWords;
    chunks_ = chunks;
  }

  // The block's word, 0 until somebody sets it. nullptr: it has none yet, or never will.
  __attribute__((always_inline)) uint32_t* Find(uint64_t address) const { return Search<false>(address); }

  // nullptr: it never will.
  __attribute__((always_inline)) uint32_t* FindOrMake(uint64_t address) { return Search<true>(address); }

 private:
  static constexpr uint64_t kWords = 1 << 16, kMostChunks = 1 << 16, kProbes = 16;
  static constexpr int kAlignmentShift = 4, kChunkShift = 20, kAddressBits = 47;
  static_assert(kWords << kAlignmentShift == 1 << kChunkShift);

  template <bool kMake>
  __attribute__((always_inline)) uint32_t* Search(uint64_t address) const {
    constexpr uint64_t kAlignmentMask = (1 << kAlignmentShift) - 1;
    if (__builtin_expect((address & kAlignmentMask) != 0 || address >> kAddressBits != 0, 0)) return nullptr;
    const auto key = static_cast<uint32_t>(address >> kChunkShift) + 1;  // never 0: that is an empty place
    // Fibonacci hashing (Knuth, TAOCP 6.4): chunks that follow each other get places far apart. Without room the place
    // is 0, of no chunk.
    uint64_t place = (key * 0x9e3779b9u * chunks_) >> 32;
    for (uint64_t probe = 0; probe < kProbes && probe < chunks_; probe++, place++) {
      if (place == chunks_) place = 0;
      uint32_t found = __atomic_load_n(&keys_[place], __ATOMIC_ACQUIRE);
      if (kMake && found == 0 &&
          __atomic_compare_exchange_n(&keys_[place], &found, key, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        found = key;
      if (__builtin_expect(found == key, 1)) return WordOf(place, address);
      if (found == 0) return nullptr;
    }
    return nullptr;
  }

  uint32_t* WordOf(uint64_t place, uint64_t address) const {
    return &words_[place * kWords + (address >> kAlignmentShift & (kWords - 1))];
  }

  uint64_t chunks_ = 0;
  uint32_t* keys_ = nullptr;
  uint32_t* words_ = nullptr;
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_BLOCK_SLOTS_H_
