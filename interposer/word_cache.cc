#include "interposer/word_cache.h"

#include <sys/mman.h>

#include "interposer/private_memory.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {
constexpr uint64_t kFirstEntries = 1 << 9;
constexpr uint64_t kSecondEntries = 1 << 12;
constexpr uint64_t kMostEntries = 1 << 17;
}  // namespace

// One thread at a time; the others go on with the table they have.
void WordCache::Grow(Table* old_table) {
  if (IsSandboxed()) return;  // a system call might be punished
  if (growing_.exchange(true, std::memory_order_acquire)) return;
  if (table_.load(std::memory_order_relaxed) == old_table) {
    uint64_t entries = kFirstEntries;
    // A hash leads everywhere: some twenty keys touch each page of the first table, and each page first by a search.
    const int present = old_table == nullptr ? MAP_POPULATE : 0;
    if (old_table != nullptr) entries = old_table->capacity < kSecondEntries ? kSecondEntries : 2 * old_table->capacity;
    long memory = RawSyscall(SYS_mmap, 0, static_cast<long>(TableBytes(entries)), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | present, -1, 0);
    if (!IsSyscallError(memory)) {
      NoteOwnMemory(static_cast<uint64_t>(memory), TableBytes(entries));
      auto* table = reinterpret_cast<Table*>(memory);
      table->shift = 64 - static_cast<uint64_t>(__builtin_ctzll(entries));
      table->capacity = entries;
      table_.store(table, std::memory_order_release);
      // All zero reads as "never used"; the first page keeps what readers need to find their place.
      if (old_table != nullptr) {
        RawSyscall(SYS_madvise, reinterpret_cast<long>(old_table) + 4096,
                   static_cast<long>((TableBytes(old_table->capacity) - 4096) & ~4095ull), MADV_DONTNEED);
      }
    }
  }
  growing_.store(false, std::memory_order_release);
}

// Takes the entry if it still holds what was expected. False: somebody else is writing it.
bool WordCache::Claim(Entry* entry, uint64_t expected) {
  return expected != kBusy && entry->key.compare_exchange_strong(expected, kBusy, std::memory_order_acquire);
}

void WordCache::Init() {
  if (table_.load(std::memory_order_acquire) == nullptr) Grow(nullptr);
}

void WordCache::Insert(uint64_t key, const CachedWords& words) {
  Table* table = table_.load(std::memory_order_acquire);
  const bool is_full = table != nullptr && table->capacity < kMostEntries &&
                       table->used.load(std::memory_order_relaxed) > table->capacity / 4 * 3;
  if (table == nullptr || is_full) {
    Grow(table);
    table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return;
  }
  const uint64_t hash = Hash(key);
  Entry* first = table->entries + (hash >> table->shift);
  Entry* target = nullptr;
  for (uint64_t probe = 0; probe < kProbes; probe++) {
    Entry& entry = first[probe];
    uint64_t found = entry.key.load(std::memory_order_relaxed);
    if (found != kUnused && found != key) continue;
    if (!Claim(&entry, found)) return;
    if (found == kUnused) table->used.fetch_add(1, std::memory_order_relaxed);
    target = &entry;
    break;
  }
  if (target == nullptr) {  // all taken: one of them, picked by other hash bits, gives way
    target = &first[(hash >> 32) % kProbes];
    if (!Claim(target, target->key.load(std::memory_order_relaxed))) return;
  }
  // Release, so that whoever sees one of the new words sees the claim too, and throws away what it read.
  target->first.store(words.first, std::memory_order_release);
  target->second.store(words.second, std::memory_order_release);
  target->third.store(words.third, std::memory_order_release);
  target->key.store(key, std::memory_order_release);
}

uint64_t WordCache::entries() const {
  Table* table = table_.load(std::memory_order_acquire);
  return table == nullptr ? 0 : table->used.load(std::memory_order_relaxed);
}

uint64_t WordCache::capacity() const {
  Table* table = table_.load(std::memory_order_acquire);
  return table == nullptr ? 0 : table->capacity;
}

}  // namespace cadastre
