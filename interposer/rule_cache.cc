#include "interposer/rule_cache.h"

#include <sys/mman.h>

#include "interposer/raw_syscall.h"

namespace cadastre {

namespace rule_cache_internal {
std::atomic<Table*> g_table{nullptr};
}  // namespace rule_cache_internal

namespace {

using rule_cache_internal::Entry;
using rule_cache_internal::g_table;
using rule_cache_internal::HashKey;
using rule_cache_internal::kBusy;
using rule_cache_internal::kProbes;
using rule_cache_internal::Table;

constexpr uint64_t kFirstEntries = 1 << 12;
constexpr uint64_t kMostEntries = 1 << 17;

std::atomic<bool> g_growing{false};

uint64_t TableBytes(uint64_t entries) { return sizeof(Table) + (entries + kProbes - 1) * sizeof(Entry); }

// One thread at a time; the others go on with the table they have.
void Grow(Table* old_table) {
  if (g_growing.exchange(true, std::memory_order_acquire)) return;
  if (g_table.load(std::memory_order_relaxed) == old_table) {
    uint64_t entries = old_table == nullptr ? kFirstEntries : 2 * old_table->capacity;
    long memory = RawSyscall(SYS_mmap, 0, static_cast<long>(TableBytes(entries)), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!IsSyscallError(memory)) {
      auto* table = reinterpret_cast<Table*>(memory);
      table->shift = 64 - static_cast<uint64_t>(__builtin_ctzll(entries));
      table->capacity = entries;
      g_table.store(table, std::memory_order_release);
      // All zero reads as "never used"; the first page keeps what readers need to find their place.
      if (old_table != nullptr) {
        RawSyscall(SYS_madvise, reinterpret_cast<long>(old_table) + 4096,
                   static_cast<long>((TableBytes(old_table->capacity) - 4096) & ~4095ull), MADV_DONTNEED);
      }
    }
  }
  g_growing.store(false, std::memory_order_release);
}

// Takes the entry if it is free (or, with `replace`, whatever it holds). False: somebody else is writing it.
bool Claim(Entry* entry, uint64_t expected) {
  return expected != kBusy && entry->key.compare_exchange_strong(expected, kBusy, std::memory_order_acquire);
}

}  // namespace

void RuleCacheInit() {
  if (g_table.load(std::memory_order_acquire) == nullptr) Grow(nullptr);
}

void RuleCacheInsert(uint64_t pc, bool exact, const CachedRule& cached) {
  Table* table = g_table.load(std::memory_order_acquire);
  const bool is_full = table != nullptr && table->capacity < kMostEntries &&
                       table->used.load(std::memory_order_relaxed) > table->capacity / 4 * 3;
  if (table == nullptr || is_full) {
    Grow(table);
    table = g_table.load(std::memory_order_acquire);
    if (table == nullptr) return;
  }
  const uint64_t key = (pc << 1) | (exact ? 1 : 0);
  const uint64_t hash = HashKey(key);
  Entry* first = table->entries + (hash >> table->shift);
  Entry* target = nullptr;
  for (uint64_t probe = 0; probe < kProbes; probe++) {
    Entry& entry = first[probe];
    uint64_t found = entry.key.load(std::memory_order_relaxed);
    if (found != 0 && found != key) continue;
    if (!Claim(&entry, found)) return;
    if (found == 0) table->used.fetch_add(1, std::memory_order_relaxed);
    target = &entry;
    break;
  }
  if (target == nullptr) {  // all taken: one of them, picked by other hash bits, gives way
    target = &first[(hash >> 32) % kProbes];
    if (!Claim(target, target->key.load(std::memory_order_relaxed))) return;
  }
  // Release, so that whoever sees one of the new words sees the claim too, and throws away what it read.
  target->rule.store(cached.rule, std::memory_order_release);
  target->frame.store(cached.frame, std::memory_order_release);
  target->owner.store(cached.owner, std::memory_order_release);
  target->key.store(key, std::memory_order_release);
}

RuleCacheUse RuleCacheCount() {
  Table* table = g_table.load(std::memory_order_acquire);
  if (table == nullptr) return {0, 0};
  return {table->used.load(std::memory_order_relaxed), table->capacity};
}

}  // namespace cadastre
