// Why: thinning changes weights of samples that other threads may be freeing. Shown here: every sum stays unbiased and
// its error honest, a pass repeats nothing, and whatever threads free meanwhile, a site's live bytes remain the sum of
// its records.
#include "interposer/live_thinning.h"

#include <atomic>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "interposer/live_table.h"
#include "interposer/sampler.h"
#include "interposer/site_table.h"
#include "tests/support/catch.h"
#include "tests/unit/interposer/test_profile.h"

namespace cadastre {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kScale = 20;
#else
constexpr int kScale = 1;
#endif

uint32_t OneSite() {
  uint64_t frames[1] = {0x7411};
  return SiteIntern(frames, 1, format::kSiteMalloc, 0);
}

struct Sums {
  double bytes = 0, variance = 0;
  uint64_t records = 0;
};
Sums LiveSums() {
  Sums sums;
  for (uint32_t slot = 0; slot < LiveSlotsUsed(); slot++) {
    const format::LiveRecord& record = g_profile.live[slot];
    if ((record.state & format::kStateMask) != format::kReady) continue;
    const double w = static_cast<double>(record.weight), s = static_cast<double>(record.size);
    sums.bytes += w;
    sums.variance += w * (w - s);
    sums.records++;
  }
  return sums;
}

void Thin(uint64_t interval, uint64_t* random) {
  ThinningStart(interval);
  while (LiveSlotsUsed() > 0 && !ThinningStep(random)) {
  }
}

bool Insert(uint64_t address, uint64_t size, uint64_t interval, uint32_t site, uint32_t shard = kTestOwners + 1) {
  const uint64_t weight = SampleWeight(size, interval);
  bool had_old;
  LiveSampleData old;
  if (!LiveInsert({address, size, weight, 1, site, 1}, shard, &had_old, &old)) return false;
  SiteLiveAdded(site, weight, 1);
  return true;
}

void Remove(uint64_t address, uint32_t shard = kTestOwners + 2) {
  LiveSampleData removed;
  if (LiveRemove(address, shard, &removed)) SiteLiveRemoved(removed.site, removed.weight);
}

TEST_CASE("Thinned samples are what sampling at the new interval would have given: unbiased, with an honest error") {
  OpenTestProfile();
  const uint32_t site = OneSite();
  struct Blocks {
    uint64_t count, size;
  };
  const Blocks held[] = {{20000, 16}, {20000, 100}, {3000, 1000}, {300, 5000}, {20, 100000}, {2, 3000000}};
  const int runs = 400 / kScale;
  double truth = 0, true_variance = 0;
  for (const Blocks& blocks : held) {
    const double size = static_cast<double>(blocks.size), p = -std::expm1(-size / 32768);
    truth += static_cast<double>(blocks.count) * size;
    true_variance += static_cast<double>(blocks.count) * size * size * (1 - p) / p;
  }
  double mean = 0, variance = 0, squares = 0;
  uint64_t random = 5;
  for (int run = 0; run < runs; run++) {
    uint64_t address = 0x600000000000;
    for (const Blocks& blocks : held) {
      const double p = -std::expm1(-static_cast<double>(blocks.size) / 4096);
      for (uint64_t i = 0; i < blocks.count; i++, address += 16) {
        const double uniform = static_cast<double>(NextRandom(&random) >> 11) * 0x1p-53;
        if (uniform < p) REQUIRE(Insert(address, blocks.size, 4096, site));
      }
    }
    for (uint64_t interval : {8192, 16384, 32768, 32768}) Thin(interval, &random);  // the last one finds nothing to do
    const Sums sums = LiveSums();
    CHECK(static_cast<double>(g_profile.sites[site].live_bytes) == sums.bytes);
    CHECK(sums.records == LiveCount());
    mean += sums.bytes / runs;
    variance += sums.variance / runs;
    squares += (sums.bytes - truth) * (sums.bytes - truth) / runs;
    for (uint64_t at = 0x600000000000; at < address; at += 16) Remove(at);
    REQUIRE(LiveCount() == 0);
    REQUIRE(g_profile.sites[site].live_bytes == 0);
  }
  CHECK(std::abs(mean - truth) < 4 * std::sqrt(true_variance / runs));
  // The estimated variance of one run is off by about sqrt(2/samples), 10 %; its mean over the runs by far less.
  CHECK(std::abs(variance / true_variance - 1) < 0.05 * std::sqrt(kScale));
  // A sample variance of n runs has the relative error sqrt(2/n): 4 sigma.
  CHECK(std::abs(squares / true_variance - 1) < 4 * std::sqrt(2.0 / runs));
}

TEST_CASE("A pass at an interval that the samples already have changes nothing") {
  OpenTestProfile();
  const uint32_t site = OneSite();
  uint64_t random = 7;
  for (uint64_t i = 0; i < 1000; i++) REQUIRE(Insert(0x500000000000 + i * 16, 64, i % 2 == 0 ? 65536 : 1 << 20, site));
  const Sums before = LiveSums();
  Thin(4096, &random);
  Thin(65536, &random);
  const Sums after = LiveSums();
  CHECK(after.bytes == before.bytes);
  CHECK(after.records == before.records);
  for (uint64_t i = 0; i < 1000; i++) Remove(0x500000000000 + i * 16);
  REQUIRE(LiveCount() == 0);
}

TEST_CASE("Threads that allocate and free while passes go on leave every sum right") {
  OpenTestProfile();
  const uint32_t site = OneSite();
  constexpr int kThreads = 3, kSteps = 300000 / kScale;
  constexpr uint64_t kBlocks = 3000;
  std::atomic<int> running{kThreads};
  std::atomic<uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t) + 1);
      const auto shard = static_cast<uint32_t>(t) + 1;  // up to kTestOwners: a slot of its own
      std::vector<bool> held(kBlocks);
      const uint64_t base = (static_cast<uint64_t>(t) + 1) << 40;
      for (int step = 0; step < kSteps; step++) {
        const uint64_t block = random() % kBlocks;
        // Different weights for one address, so that a mix-up would show.
        if (held[block]) {
          Remove(base + block * 16, shard);
        } else if (!Insert(base + block * 16, 16 + random() % 2000, 1024ull << random() % 4, site, shard)) {
          refused++;
          continue;
        }
        held[block] = !held[block];
      }
      for (uint64_t block = 0; block < kBlocks; block++) {
        if (held[block] && block % 2 == 0) Remove(base + block * 16, shard);
      }
      running--;
    });
  }
  uint64_t random = 11, passes = 0;
  while (running > 0) {
    Thin(2048ull << passes % 8, &random);
    passes++;
  }
  for (auto& thread : threads) thread.join();
  const Sums sums = LiveSums();
  CHECK(passes > 3);
  CHECK(refused == 0);
  CHECK(sums.records == LiveCount());
  CHECK(static_cast<double>(g_profile.sites[site].live_bytes) == sums.bytes);
  for (uint64_t t = 1; t <= kThreads; t++) {
    for (uint64_t block = 0; block < kBlocks; block++) Remove((t << 40) + block * 16);
  }
  CHECK(LiveCount() == 0);
  CHECK(g_profile.sites[site].live_bytes == 0);
}

TEST_CASE("The next doubling leaves room, and comes at once where little was gained") {
  CHECK(NextDoubling(0, 1000) == 500);
  CHECK(NextDoubling(250, 1000) == 500);
  CHECK(NextDoubling(400, 1000) == 700);
  CHECK(NextDoubling(600, 1000) == 800);
  CHECK(NextDoubling(750, 1000) == 750);
  CHECK(NextDoubling(1000, 1000) == 1000);
}

}  // namespace
}  // namespace cadastre
