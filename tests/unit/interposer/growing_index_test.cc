// The index of strings and sites: one number for one record for ever, from many threads, at a cost that does not grow
// with what is in it.
#include "interposer/growing_index.h"

#include <time.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

using namespace cadastre;

namespace {

// Records are numbers that stand for themselves; what is in the index is found by value.
class Numbers {
 public:
  explicit Numbers(size_t capacity) : values_(capacity + 1) { REQUIRE(index_.Init(capacity)); }

  uint32_t Add(uint64_t value, uint64_t hash) {
    uint32_t made = 0;
    const uint32_t number = index_.FindOrAdd(
        hash, [&](uint32_t n) { return values_[n] == value; },
        [&] {
          made = __atomic_add_fetch(&last_, 1, __ATOMIC_RELAXED);
          values_[made] = value;
          return made;
        });
    if (made != 0 && made != number) __atomic_add_fetch(&given_up_, 1, __ATOMIC_RELAXED);
    return number;
  }
  uint32_t Find(uint64_t value, uint64_t hash) const {
    return index_.Find(hash, [&](uint32_t n) { return values_[n] == value; });
  }
  uint32_t made() const { return last_ - given_up_; }

 private:
  GrowingIndex index_;
  std::vector<uint64_t> values_;
  uint32_t last_ = 0, given_up_ = 0;
};

uint64_t Hash(uint64_t value) {
  value *= 0x9e3779b97f4a7c15ull;
  return (value ^ (value >> 29)) * 0xbf58476d1ce4e5b9ull;
}

}  // namespace

TEST_CASE("An index without memory has no room", "[growing_index]") {
  GrowingIndex index;
  auto never = [](uint32_t) { return true; };
  CHECK(index.Find(1, never) == 0);
  CHECK(index.FindOrAdd(1, never, [] { return 7u; }) == 0);
}

TEST_CASE("Records of one hash are told apart, and no more are asked for than there is room", "[growing_index]") {
  Numbers numbers(4000);
  for (uint64_t value = 1; value <= 3000; value++) REQUIRE(numbers.Add(value, 5) == value);
  for (uint64_t value = 1; value <= 3000; value++) {
    REQUIRE(numbers.Add(value, 5) == value);
    REQUIRE(numbers.Find(value, 5) == value);
  }
  CHECK(numbers.Find(3001, 5) == 0);
  CHECK(numbers.Find(1, 5 + (1ull << 40)) == 0);  // another upper half
}

TEST_CASE("The whole capacity has room", "[growing_index]") {
  constexpr uint64_t kCapacity = 70'000;
  Numbers numbers(kCapacity);
  for (uint64_t value = 1; value <= kCapacity; value++) REQUIRE(numbers.Add(value, Hash(value)) == value);
  for (uint64_t value = 1; value <= kCapacity; value++) REQUIRE(numbers.Find(value, Hash(value)) == value);
}

TEST_CASE("Threads that bring equal records agree", "[growing_index]") {
  constexpr uint32_t kValues = 20'000, kThreads = 4;
  Numbers numbers(static_cast<size_t>(kValues) * kThreads);
  std::vector<std::vector<uint32_t>> seen(kThreads, std::vector<uint32_t>(kValues + 1));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      for (uint32_t i = 1; i <= kValues; i++) {
        const uint32_t value = t % 2 == 0 ? i : kValues + 1 - i;
        seen[t][value] = numbers.Add(value, Hash(value));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uint32_t t = 1; t < kThreads; t++) CHECK(seen[t] == seen[0]);
  CHECK(numbers.made() == kValues);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
namespace {

double ProcessorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

TEST_CASE("A new record costs the same when there are many", "[growing_index]") {
  constexpr uint64_t kPart = 5'000, kParts = 50;
  Numbers numbers(kPart * kParts);
  uint64_t value = 0;
  auto add_part = [&] {
    const double begin = ProcessorSeconds();
    for (uint64_t i = 0; i < kPart; i++, value++) REQUIRE(numbers.Add(value, Hash(value)) != 0);
    return ProcessorSeconds() - begin;
  };
  double first = add_part(), last = 1e9;
  for (uint64_t part = 1; part < kParts; part++) {
    const double seconds = add_part();
    if (part < 5) first = std::max(first, seconds);
    if (part + 10 >= kParts) last = std::min(last, seconds);
  }
  CHECK(last <
        first * 8);  // five more levels to look at; chains that run into each other cost hundreds of times as much
}
#endif
