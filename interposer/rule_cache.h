// Remembers, per pc, the unwind rule and the finished frame word, so that a warm frame costs one cache line and no
// look-up.
//
// A lock-free hash table of 32-byte entries in private mappings. It starts with 4,096 entries (128 KiB of address
// space, resident as far as touched) and is replaced by one twice as large when three quarters are in use, up to
// 131,072 (4 MiB); then old entries give way. Nothing is copied: the new table fills itself. The old one stays mapped,
// for others may be reading it, but its pages are given back. Thread- and signal-safety: all functions are safe in
// hooks. A writer claims an entry with one CAS and gives up if it loses; a reader sees a whole entry or none (key read
// before and after the words). Growing makes system calls, a dozen in a process's life. Errors: without memory nothing
// is remembered, and every pc is looked up.
//
// Example:
//   CachedRule cached;
//   if (!RuleCacheFind(pc, exact, &cached)) { cached = ...; RuleCacheInsert(pc, exact, cached); }
#ifndef CADASTRE_INTERPOSER_RULE_CACHE_H_
#define CADASTRE_INTERPOSER_RULE_CACHE_H_

#include <stdint.h>

#include <atomic>

#include "interposer/unwind_rules.h"

namespace cadastre {

// Three words, as they lie in the table; unpacked where they are used, so that a walk keeps them in processor
// registers.
struct CachedRule {
  uint64_t rule = 0;   // [31:0] cfa_offset [47:32] rbp_offset [51:48] kind [55:52] saved_rbp [63:56] cfa_addend
  uint64_t frame = 0;  // frame word (format::FrameTag)
  uint64_t owner = 0;  // [31:0] library [32] permanent [33] own code

  int64_t cfa_offset() const { return static_cast<int32_t>(rule); }
  int64_t rbp_offset() const { return static_cast<int16_t>(rule >> 32); }
  UnwindKind kind() const { return static_cast<UnwindKind>((rule >> 48) & 15); }
  SavedRbp saved_rbp() const { return static_cast<SavedRbp>((rule >> 52) & 15); }
  uint64_t cfa_addend() const { return rule >> 56; }
  uint32_t library() const { return static_cast<uint32_t>(owner); }  // index
  bool is_permanent() const { return (owner >> 32) & 1; }            // that library cannot go away
  bool is_own_code() const { return (owner >> 33) & 1; }             // libcadastre.so: not recorded
  bool is_plainly_permanent() const { return owner >> 32 == 1; }     // permanent, and not our own code
  // The two rules that nearly all code has, rbp unchanged or saved at an offset from CFA: bits 48 to 55 at once.
  bool is_usual_from_rsp() const { return (rule >> 48 & 0xef) == kUnwindFromRsp; }
  bool is_usual_from_rbp() const { return (rule >> 48 & 0xef) == kUnwindFromRbp; }

  void SetRule(const UnwindRule& from) {
    rule = static_cast<uint32_t>(from.cfa_offset) |
           static_cast<uint64_t>(static_cast<uint16_t>(from.rbp_offset)) << 32 |
           static_cast<uint64_t>(from.kind) << 48 | static_cast<uint64_t>(from.saved_rbp) << 52 |
           static_cast<uint64_t>(from.cfa_addend) << 56;
  }
  void SetOwner(uint32_t library, bool permanent, bool own_code) {
    owner = library | static_cast<uint64_t>(permanent) << 32 | static_cast<uint64_t>(own_code) << 33;
  }
};

namespace rule_cache_internal {

// key: 0 = never used, kBusy = being written, else (pc << 1) | exact.
inline constexpr uint64_t kBusy = ~0ull;
struct Entry {
  std::atomic<uint64_t> key;
  std::atomic<uint64_t> rule, frame, owner;  // CachedRule
};
static_assert(sizeof(Entry) == 32);

struct Table {
  uint64_t shift;     // 64 - log2(capacity): the upper bits of the hash are the place
  uint64_t capacity;  // kProbes more lie behind, so that probing needs no wrap
  std::atomic<uint64_t> used;
  uint64_t unused[5];
  Entry entries[1];
};

extern std::atomic<Table*> g_table;

inline constexpr uint64_t kProbes = 4;  // entries looked at: two cache lines

// Fibonacci hashing (Knuth, TAOCP 6.4): 2^64 / golden ratio.
inline uint64_t HashKey(uint64_t key) { return key * 0x9e3779b97f4a7c15ull; }

}  // namespace rule_cache_internal

__attribute__((always_inline)) inline bool RuleCacheFind(uint64_t pc, bool exact, CachedRule* cached) {
  using namespace rule_cache_internal;
  Table* table = g_table.load(std::memory_order_acquire);
  if (__builtin_expect(table == nullptr, 0)) return false;
  const uint64_t key = (pc << 1) | (exact ? 1 : 0);
  Entry* first = table->entries + (HashKey(key) >> table->shift);
  for (uint64_t probe = 0; probe < kProbes; probe++) {
    Entry& entry = first[probe];
    uint64_t found = entry.key.load(std::memory_order_acquire);
    if (found == 0) return false;
    if (found != key) continue;
    // Acquire, so that the key is read again after them.
    cached->rule = entry.rule.load(std::memory_order_acquire);
    cached->frame = entry.frame.load(std::memory_order_acquire);
    cached->owner = entry.owner.load(std::memory_order_acquire);
    if (entry.key.load(std::memory_order_relaxed) != key) return false;
    return true;
  }
  return false;
}

// The same table for a walk of many frames, looked at in the first place only.
class RuleCacheView {
 public:
  RuleCacheView() : table_(rule_cache_internal::g_table.load(std::memory_order_acquire)) {
    shift_ = table_ != nullptr ? static_cast<uint8_t>(table_->shift) : 0;
  }
  bool is_there() const { return table_ != nullptr; }

  // A return address that lies in its first place. False: RuleCacheFind may know more.
  __attribute__((always_inline)) bool FindFirst(uint64_t pc, CachedRule* cached) const {
    const uint64_t key = pc << 1;
    auto& entry = table_->entries[rule_cache_internal::HashKey(key) >> shift_];
    if (__builtin_expect(entry.key.load(std::memory_order_acquire) != key, 0)) return false;
    cached->rule = entry.rule.load(std::memory_order_acquire);
    cached->frame = entry.frame.load(std::memory_order_acquire);
    cached->owner = entry.owner.load(std::memory_order_acquire);
    return __builtin_expect(entry.key.load(std::memory_order_relaxed) == key, 1);
  }

 private:
  rule_cache_internal::Table* table_;
  uint8_t shift_;
};

void RuleCacheInsert(uint64_t pc, bool exact, const CachedRule& cached);

// Maps the first table. Outside hooks; without it the first insert does it.
void RuleCacheInit();

// Entries in use and bytes mapped, for tests and doctor.
struct RuleCacheUse {
  uint64_t entries, capacity;
};
RuleCacheUse RuleCacheCount();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_RULE_CACHE_H_
