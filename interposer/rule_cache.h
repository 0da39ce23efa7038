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

struct CachedRule {
  UnwindRule rule;
  uint64_t frame;    // frame word (format::FrameTag)
  uint32_t library;  // index
  bool permanent;    // that library cannot go away
  bool is_own_code;  // libcadastre.so: not recorded
};

namespace rule_cache_internal {

// key: 0 = never used, kBusy = being written, else (pc << 1) | exact.
inline constexpr uint64_t kBusy = ~0ull;
struct Entry {
  std::atomic<uint64_t> key;
  std::atomic<uint64_t> rule;  // [31:0] cfa_offset [47:32] rbp_offset [51:48] kind [55:52] saved_rbp [63:56] cfa_addend
  std::atomic<uint64_t> frame;
  std::atomic<uint64_t> owner;  // [31:0] library [32] permanent [33] is_own_code
};
static_assert(sizeof(Entry) == 32);

struct Table {
  uint64_t mask;  // entries - 1
  std::atomic<uint64_t> used;
  uint64_t unused[6];
  Entry entries[1];
};

extern std::atomic<Table*> g_table;

inline constexpr uint64_t kProbes = 4;  // entries looked at: two cache lines

inline uint64_t HashKey(uint64_t key) {
  key *= 0x9e3779b97f4a7c15ull;  // 2^64 / golden ratio
  return key ^ (key >> 32);
}

}  // namespace rule_cache_internal

__attribute__((always_inline)) inline bool RuleCacheFind(uint64_t pc, bool exact, CachedRule* cached) {
  using namespace rule_cache_internal;
  Table* table = g_table.load(std::memory_order_acquire);
  if (__builtin_expect(table == nullptr, 0)) return false;
  const uint64_t key = (pc << 1) | (exact ? 1 : 0);
  const uint64_t hash = HashKey(key);
  for (uint64_t probe = 0; probe < kProbes; probe++) {
    Entry& entry = table->entries[(hash + probe) & table->mask];
    uint64_t found = entry.key.load(std::memory_order_acquire);
    if (found == 0) return false;
    if (found != key) continue;
    uint64_t rule = entry.rule.load(std::memory_order_relaxed);
    uint64_t frame = entry.frame.load(std::memory_order_relaxed);
    uint64_t owner = entry.owner.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (entry.key.load(std::memory_order_relaxed) != key) return false;
    cached->rule.cfa_offset = static_cast<int32_t>(rule);
    cached->rule.rbp_offset = static_cast<int16_t>(rule >> 32);
    cached->rule.kind = static_cast<UnwindKind>((rule >> 48) & 15);
    cached->rule.saved_rbp = static_cast<SavedRbp>((rule >> 52) & 15);
    cached->rule.cfa_addend = static_cast<uint8_t>(rule >> 56);
    cached->frame = frame;
    cached->library = static_cast<uint32_t>(owner);
    cached->permanent = (owner >> 32) & 1;
    cached->is_own_code = (owner >> 33) & 1;
    return true;
  }
  return false;
}

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
