// "Is this block perhaps sampled?" in one load: the filter that free asks before anything else.
//
// 16 Ki counters of one byte (16 KiB, half of an L1 data cache), indexed by a multiplicative hash of the address.
// Insert adds one, remove subtracts one; a counter that reached 255 stays there (a stale hit only costs a look-up).
// Bytes instead of the smaller 2-bit counters because the test is then one instruction without a shift, and because a
// counter that may count to 254 never sticks in practice: 2-bit ones stick at 3 and need a rebuild beside the live set.
// With n live samples 1-exp(-n/16384) of the unsampled frees ask the live table in vain: 6 % at 1,000, 11 % at 2,000 (1
// GB live at 512 KiB). Order: insert into the live table first, then here; remove here last. A free that misses can
// then only be one of a block that is not recorded: whoever frees a block has seen malloc return it. Works before
// relocation. Thread- and signal-safety: lock-free.
#ifndef CADASTRE_INTERPOSER_FREE_FILTER_H_
#define CADASTRE_INTERPOSER_FREE_FILTER_H_

#include <stdint.h>

namespace cadastre {

inline constexpr int kFilterBits = 14;
inline constexpr uint64_t kFilterMultiplier = 0x9e3779b97f4a7c15ull;  // 2^64 / golden ratio (Knuth, TAOCP 6.4)

extern uint8_t g_free_filter[1 << kFilterBits];

__attribute__((always_inline)) inline uint64_t FilterIndex(uint64_t address) {
  return (address * kFilterMultiplier) >> (64 - kFilterBits);
}

// A plain read of one byte, which is one comparison with memory; compilers do not fold an atomic one into it and need
// an instruction more. ThreadSanitizer, which cannot know that a byte is never torn, gets the atomic one.
__attribute__((always_inline)) inline bool FilterMayContain(const void* pointer) {
  const uint8_t* counter = &g_free_filter[FilterIndex(reinterpret_cast<uint64_t>(pointer))];
#ifdef __SANITIZE_THREAD__
  return __atomic_load_n(counter, __ATOMIC_RELAXED) != 0;
#else
  return __builtin_expect(*counter != 0, 0);
#endif
}

inline void CounterAdd(uint8_t* counter) {
  uint8_t value = __atomic_load_n(counter, __ATOMIC_RELAXED);
  while (value != 255 &&
         !__atomic_compare_exchange_n(counter, &value, value + 1, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

inline void CounterRemove(uint8_t* counter) {
  uint8_t value = __atomic_load_n(counter, __ATOMIC_RELAXED);
  while (value != 255 && value != 0 &&
         !__atomic_compare_exchange_n(counter, &value, value - 1, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

inline void FilterAdd(uint64_t address) { CounterAdd(&g_free_filter[FilterIndex(address)]); }
inline void FilterRemove(uint64_t address) { CounterRemove(&g_free_filter[FilterIndex(address)]); }

// Says yes from here on, and Add and Remove change nothing: for who records every block.
inline void FilterSaturate() {
  for (uint8_t& counter : g_free_filter) __atomic_store_n(&counter, 255, __ATOMIC_RELAXED);
}

inline void FilterAddForEver(uint64_t address) {
  __atomic_store_n(&g_free_filter[FilterIndex(address)], 255, __ATOMIC_RELAXED);
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_FREE_FILTER_H_
