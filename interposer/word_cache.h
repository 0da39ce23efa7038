// A lock-free cache from one 64-bit key to three 64-bit words: unwind rules by pc, method names by method and bytecode.
//
// Open addressing over 32-byte entries in private mappings. A cache starts with 512 entries (16 KiB, present at once)
// and is replaced by a larger one when three quarters are in use: 4,096, then twice as many each time, up to 131,072 (4
// MiB); then old entries give way. Nothing is copied: the new table fills itself. The old one stays mapped, for others
// may be reading it, but its pages are given back. Thread- and signal-safety: all functions are safe in hooks. A writer
// claims an entry with one CAS and gives up if it loses; a reader sees a whole entry or none (key read before and after
// the words). Growing makes system calls, a dozen in a process's life. Errors: without memory nothing is remembered,
// and every key is looked up anew by the caller.
//
// Example:
//   static WordCache cache;
//   CachedWords words;
//   if (!cache.Find(key, &words)) { words = ...; cache.Insert(key, words); }
#ifndef CADASTRE_INTERPOSER_WORD_CACHE_H_
#define CADASTRE_INTERPOSER_WORD_CACHE_H_

#include <stdint.h>

#include <atomic>

namespace cadastre {

struct CachedWords {
  uint64_t first, second, third;
};

class WordCache {
 public:
  constexpr WordCache() = default;
  WordCache(const WordCache&) = delete;
  WordCache& operator=(const WordCache&) = delete;

  // key: neither 0 nor ~0.
  __attribute__((always_inline)) bool Find(uint64_t key, CachedWords* words) const {
    Table* table = table_.load(std::memory_order_acquire);
    if (__builtin_expect(table == nullptr, 0)) return false;
    Entry* first = table->entries + (Hash(key) >> table->shift);
    for (uint64_t probe = 0; probe < kProbes; probe++) {
      Entry& entry = first[probe];
      uint64_t found = entry.key.load(std::memory_order_acquire);
      if (found == kUnused) return false;
      if (found != key) continue;
      return Read(entry, key, words);
    }
    return false;
  }

  void Insert(uint64_t key, const CachedWords& words);

  // Maps the first table; without it the first insert does it.
  void Init();

  // Entries in use and room for, for tests and doctor.
  uint64_t entries() const;
  uint64_t capacity() const;

 private:
  static constexpr uint64_t kUnused = 0, kBusy = ~0ull;
  static constexpr uint64_t kProbes = 4;  // entries looked at: two cache lines

  struct Entry {
    std::atomic<uint64_t> key;
    std::atomic<uint64_t> first, second, third;
  };
  static_assert(sizeof(Entry) == 32);

  // The words of an entry that had the key a moment ago. False: it is being written.
  __attribute__((always_inline)) static bool Read(const Entry& entry, uint64_t key, CachedWords* words) {
    // Acquire, so that the key is read again after them.
    words->first = entry.first.load(std::memory_order_acquire);
    words->second = entry.second.load(std::memory_order_acquire);
    words->third = entry.third.load(std::memory_order_acquire);
    return __builtin_expect(entry.key.load(std::memory_order_relaxed) == key, 1);
  }

  struct Table {
    uint64_t shift;     // 64 - log2(capacity): the upper bits of the hash are the place
    uint64_t capacity;  // kProbes more lie behind, so that probing needs no wrap
    std::atomic<uint64_t> used;
    uint64_t unused[5];
    Entry entries[1];
  };

  // Fibonacci hashing (Knuth, TAOCP 6.4): 2^64 / golden ratio.
  static uint64_t Hash(uint64_t key) { return key * 0x9e3779b97f4a7c15ull; }
  static uint64_t TableBytes(uint64_t entries) { return sizeof(Table) + (entries + kProbes - 1) * sizeof(Entry); }
  static bool Claim(Entry* entry, uint64_t expected);
  void Grow(Table* old_table);

  std::atomic<Table*> table_{nullptr};
  std::atomic<bool> growing_{false};

 public:
  // The cache as it is now, for many searches in a row that look at each key's first place only.
  class View {
   public:
    explicit View(const WordCache& cache) : table_(cache.table_.load(std::memory_order_acquire)) {
      shift_ = table_ != nullptr ? static_cast<uint8_t>(table_->shift) : 0;
    }
    bool is_there() const { return table_ != nullptr; }

    // False: Find may know more.
    __attribute__((always_inline)) bool FindFirst(uint64_t key, CachedWords* words) const {
      const Entry& entry = table_->entries[Hash(key) >> shift_];
      if (__builtin_expect(entry.key.load(std::memory_order_acquire) != key, 0)) return false;
      return Read(entry, key, words);
    }

   private:
    Table* table_;
    uint8_t shift_;
  };
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_WORD_CACHE_H_
