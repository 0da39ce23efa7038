// Why: a block whose word is not found again stays live for ever, and two blocks with one word are each other's.
// Checked against a plain map, with more chunks than there is room for, and by threads that bring the same chunks at
// once.
#include "interposer/block_slots.h"

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

constexpr uint64_t kChunk = 1 << 20;
// Words of a chunk, its key, and a little.
constexpr uint64_t RoomFor(uint64_t chunks) { return chunks * ((256 << 10) + 16); }

TEST_CASE("Each block of 16 bytes has a word of its own, which is found again") {
  BlockSlots slots;
  slots.Init(RoomFor(8));
  std::map<uint64_t, uint32_t*> words;
  std::set<uint32_t*> distinct;
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; i++) {
    const uint64_t address = 0x7f1234500000 + random() % (4 * kChunk) / 16 * 16;
    uint32_t* word = slots.FindOrMake(address);
    REQUIRE(word != nullptr);
    const auto known = words.emplace(address, word);
    if (known.second) REQUIRE(*word == 0);
    REQUIRE(known.first->second == word);
    *word = static_cast<uint32_t>(address >> 4);
    distinct.insert(word);
  }
  REQUIRE(distinct.size() == words.size());
  for (const auto& [address, word] : words) {
    REQUIRE(slots.Find(address) == word);
    REQUIRE(*word == static_cast<uint32_t>(address >> 4));
  }
}

TEST_CASE("What is not there, or cannot be, has no word") {
  BlockSlots slots;
  CHECK(slots.Find(0x5000000) == nullptr);
  CHECK(slots.FindOrMake(0x5000000) == nullptr);  // no room yet
  slots.Init(1000);
  CHECK(slots.FindOrMake(0x5000000) == nullptr);  // nor now
  slots.Init(RoomFor(2));
  CHECK(slots.Find(0x5000000) == nullptr);
  REQUIRE(slots.FindOrMake(0x5000000) != nullptr);
  CHECK(slots.Find(0x5000000) != nullptr);
  for (const uint64_t odd : {0x5000008ull, 0x5000001ull, 1ull << 47, (1ull << 47) + 0x5000000, ~0ull - 15}) {
    CHECK(slots.Find(odd) == nullptr);
    CHECK(slots.FindOrMake(odd) == nullptr);
  }
  CHECK(slots.FindOrMake((1ull << 47) - 16) != nullptr);
}

TEST_CASE("Chunks beyond the room have no words, always the same ones, and share none") {
  BlockSlots slots;
  constexpr uint64_t kRoom = 100, kChunks = 1000;
  slots.Init(RoomFor(kRoom));
  std::vector<uint32_t*> made;
  std::set<uint32_t*> distinct;
  for (uint64_t i = 0; i < kChunks; i++) {
    made.push_back(slots.FindOrMake(i * 3 * kChunk + 48));
    if (made.back() != nullptr) distinct.insert(made.back());
  }
  CHECK(distinct.size() == kRoom);
  for (uint64_t i = 0; i < kChunks; i++) {
    REQUIRE(slots.FindOrMake(i * 3 * kChunk + 48) == made[i]);
    REQUIRE(slots.Find(i * 3 * kChunk + 48) == made[i]);
  }
}

TEST_CASE("A heap of one piece fills all the room before a chunk is without") {
  BlockSlots slots;
  constexpr uint64_t kRoom = 500;
  slots.Init(RoomFor(kRoom));
  uint64_t found = 0;
  while (slots.FindOrMake(0x555500000000 + found * kChunk) != nullptr) found++;
  CHECK(found > kRoom * 9 / 10);
}

TEST_CASE("Threads that bring the same chunks at once get the same words") {
  constexpr int kThreads = 4;
  constexpr uint64_t kChunks = 64;
  BlockSlots slots;
  slots.Init(RoomFor(2 * kChunks));
  std::vector<std::vector<uint32_t*>> words(kThreads);
  std::atomic<int> waiting{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      waiting--;
      while (waiting > 0) {
      }
      for (uint64_t i = 0; i < kChunks; i++) words[t].push_back(slots.FindOrMake(i * kChunk + 32));
    });
  }
  for (auto& thread : threads) thread.join();
  for (int t = 1; t < kThreads; t++) REQUIRE(words[t] == words[0]);
  const std::set<uint32_t*> distinct(words[0].begin(), words[0].end());
  REQUIRE(distinct.size() == kChunks);
  REQUIRE(distinct.count(nullptr) == 0);
}

}  // namespace
}  // namespace cadastre
