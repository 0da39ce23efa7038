// The rule cache is read and written by all threads without a lock. A mixed-up entry would send a stack anywhere, so
// every entry found must be the one that was put in for that pc, while threads insert, collide, grow the table and
// replace entries.
#include "interposer/rule_cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

using namespace cadastre;

namespace {

CachedRule RuleFor(uint64_t pc, bool exact) {
  uint64_t hash = (pc * 2 + exact) * 0x2545f4914f6cdd1dull;
  CachedRule cached;
  cached.rule = hash;
  cached.frame = ~hash;
  cached.owner = hash ^ 0x1234567812345678;
  return cached;
}

bool IsEqual(const CachedRule& a, const CachedRule& b) {
  return a.rule == b.rule && a.frame == b.frame && a.owner == b.owner;
}

}  // namespace

TEST_CASE("A rule comes out of its words as it went in") {
  UnwindRule rule;
  rule.cfa_offset = -123456;
  rule.rbp_offset = -16;
  rule.kind = kUnwindRspDeref;
  rule.saved_rbp = kRbpAtRbp;
  rule.cfa_addend = 200;
  CachedRule cached;
  cached.SetRule(rule);
  cached.SetOwner(70000, true, false);
  CHECK(cached.cfa_offset() == -123456);
  CHECK(cached.rbp_offset() == -16);
  CHECK(cached.kind() == kUnwindRspDeref);
  CHECK(cached.saved_rbp() == kRbpAtRbp);
  CHECK(cached.cfa_addend() == 200);
  CHECK(cached.library() == 70000);
  CHECK(cached.is_permanent());
  CHECK_FALSE(cached.is_own_code());
}

TEST_CASE("An entry is found again, under its own kind of pc only") {
  RuleCacheInit();
  CachedRule found;
  const uint64_t pc = 0x7f0012345678;
  CHECK_FALSE(RuleCacheFind(pc, false, &found));
  RuleCacheInsert(pc, false, RuleFor(pc, false));
  REQUIRE(RuleCacheFind(pc, false, &found));
  CHECK(IsEqual(found, RuleFor(pc, false)));
  CHECK_FALSE(RuleCacheFind(pc, true, &found));
  RuleCacheInsert(pc, true, RuleFor(pc, true));
  REQUIRE(RuleCacheFind(pc, true, &found));
  CHECK(IsEqual(found, RuleFor(pc, true)));
}

TEST_CASE("A second insert for one pc replaces the first and takes no more room") {
  RuleCacheInit();
  const uint64_t pc = 0x55500000777;
  RuleCacheInsert(pc, false, RuleFor(1, false));
  uint64_t before = RuleCacheCount().entries;
  RuleCacheInsert(pc, false, RuleFor(pc, false));
  CachedRule found;
  REQUIRE(RuleCacheFind(pc, false, &found));
  CHECK(IsEqual(found, RuleFor(pc, false)));
  CHECK(RuleCacheCount().entries == before);
}

TEST_CASE("Threads never see an entry that nobody made, while the table grows to its limit") {
  RuleCacheInit();
  std::atomic<uint64_t> wrong{0}, hits{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; t++) {
    threads.emplace_back([&wrong, &hits, t] {
      uint64_t state = t + 1;
      for (int i = 0; i < 400000; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        uint64_t range = 1000 + static_cast<uint64_t>(i);  // so that the table fills slowly
        uint64_t pc = 0x400000 + (state >> 33) % range;
        CachedRule found;
        if (RuleCacheFind(pc, i & 1, &found)) {
          hits++;
          if (!IsEqual(found, RuleFor(pc, i & 1))) wrong++;
        } else {
          RuleCacheInsert(pc, i & 1, RuleFor(pc, i & 1));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(hits > 100000);
  CHECK(RuleCacheCount().capacity == 1 << 17);
}
