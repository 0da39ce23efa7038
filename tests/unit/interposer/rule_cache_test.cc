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
  CachedRule cached = {};
  uint64_t hash = (pc * 2 + exact) * 0x2545f4914f6cdd1dull;
  cached.rule.cfa_offset = static_cast<int32_t>(hash);
  cached.rule.rbp_offset = static_cast<int16_t>(hash >> 32);
  cached.rule.kind = static_cast<UnwindKind>((hash >> 48) % 8);
  cached.rule.saved_rbp = static_cast<SavedRbp>((hash >> 52) % 3);
  cached.rule.cfa_addend = static_cast<uint8_t>(hash >> 56);
  cached.frame = ~hash;
  cached.library = static_cast<uint32_t>(hash >> 13);
  cached.permanent = hash & 1;
  cached.is_own_code = hash & 2;
  return cached;
}

bool IsEqual(const CachedRule& a, const CachedRule& b) {
  return a.rule.cfa_offset == b.rule.cfa_offset && a.rule.rbp_offset == b.rule.rbp_offset &&
         a.rule.kind == b.rule.kind && a.rule.saved_rbp == b.rule.saved_rbp && a.rule.cfa_addend == b.rule.cfa_addend &&
         a.frame == b.frame && a.library == b.library && a.permanent == b.permanent && a.is_own_code == b.is_own_code;
}

}  // namespace

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
