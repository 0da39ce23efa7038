// The promise on every number: the estimate is unbiased and its standard error is honest. Nothing short of many seeded
// runs can show either, so this runs a target whose live bytes are known some hundreds of times per question.
//
// Seeds are fixed and the target is single-threaded, so a run is repeatable; the bounds are wide enough that a right
// estimator meets them for nearly all sets of seeds (the arithmetic stands at each), and a wrong weight or variance
// does not.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "symbolizer/profile.h"
#include "tests/support/catch.h"
#include "tests/support/target_process.h"

namespace cadastre {
namespace {

using testing::ProfileOf;
using testing::ScratchDirectory;
using testing::StartRecorded;
using testing::WaitFor;

struct Blocks {
  uint64_t count, size;
};

struct Estimate {
  double live_bytes = 0, live_variance = 0, allocated_bytes = 0, allocated_count = 0;
  uint64_t samples = 0, interval_doublings = 0;
};

uint64_t TotalBytes(const std::vector<Blocks>& held) {
  uint64_t total = 0;
  for (const Blocks& blocks : held) total += blocks.count * blocks.size;
  return total;
}

// Variance of the estimate of the live bytes: a block is sampled with p = 1 - exp(-S/R) and then stands for S/p, so its
// contribution has variance S^2 (1-p)/p; blocks are independent because the gaps have no memory.
double TrueVariance(const std::vector<Blocks>& held, double interval) {
  double variance = 0;
  for (const Blocks& blocks : held) {
    double size = blocks.size;
    double p = -std::expm1(-size / interval);
    variance += blocks.count * size * size * (1 - p) / p;
  }
  return variance;
}

Estimate RunOnce(const std::vector<Blocks>& held, uint64_t interval, uint64_t seed, const std::string& more = "") {
  ScratchDirectory out("statistics");
  std::vector<std::string> command = {KNOWN_LIVE_PROGRAM};
  for (const Blocks& blocks : held) command.push_back(std::to_string(blocks.count) + ":" + std::to_string(blocks.size));
  pid_t pid = StartRecorded(command, "interval=" + std::to_string(interval) + ",seed=" + std::to_string(seed) + more,
                            out.path());
  REQUIRE(pid > 0);
  REQUIRE(WaitFor(pid) == 0);
  absl::StatusOr<Profile> profile = ReadProfile(ProfileOf(out.path(), pid));
  INFO(profile.status().ToString());
  REQUIRE(profile.ok());
  REQUIRE(profile->interval_bytes == interval);
  REQUIRE(profile->losses.dropped_samples == 0);

  Estimate estimate;
  estimate.interval_doublings = profile->losses.interval_doublings;
  for (const LiveSample& sample : profile->live) {
    double weight = sample.weight_bytes;
    estimate.live_bytes += weight;
    estimate.live_variance += weight * (weight - static_cast<double>(sample.size_bytes));
    estimate.samples++;
  }
  for (const Site& site : profile->sites) {
    estimate.allocated_bytes += site.allocated_bytes;
    estimate.allocated_count += site.allocated_count;
  }
  return estimate;
}

// Enough runs for a standard error of the mean of at most 0.25 % (so that the bound of 1 % is 4 sigma), a fifth more
// than that.
int RunsForQuarterPercent(const std::vector<Blocks>& held, double interval) {
  double relative = std::sqrt(TrueVariance(held, interval)) / TotalBytes(held);
  return std::max(3, static_cast<int>(std::ceil(1.2 * std::pow(relative / 0.0025, 2))));
}

void RequireUnbiased(const std::vector<Blocks>& held, uint64_t interval, uint64_t first_seed) {
  int runs = RunsForQuarterPercent(held, interval);
  double live = 0, variance = 0, allocated = 0, count = 0, blocks = 0;
  for (const Blocks& kind : held) blocks += kind.count;
  for (int run = 0; run < runs; run++) {
    Estimate estimate = RunOnce(held, interval, first_seed + run);
    live += estimate.live_bytes / runs;
    variance += estimate.live_variance / runs;
    allocated += estimate.allocated_bytes / runs;
    count += estimate.allocated_count / runs;
  }
  double truth = TotalBytes(held);
  double true_variance = TrueVariance(held, interval);
  printf("interval %7lu, %8lu B: %3d runs, mean live %+.3f %%, allocated bytes %+.3f %%, blocks %+.3f %%\n", interval,
         held[0].size, runs, 100 * (live / truth - 1), 100 * (allocated / (2 * truth) - 1),
         100 * (count / (2 * blocks) - 1));
  INFO("interval " << interval << ", size " << held[0].size << ", runs " << runs);
  CHECK(std::abs(live / truth - 1) < 0.01);
  CHECK(std::abs(allocated / (2 * truth) - 1) < 0.01);
  CHECK(std::abs(count / (2 * blocks) - 1) < 0.01);
  // Its own relative error is about sqrt(samples in all runs)^-1, below 1 % wherever there is any variance to speak of.
  if (std::sqrt(true_variance) > 1e-4 * truth) CHECK(std::abs(variance / true_variance - 1) < 0.1);
}

TEST_CASE("The 95 % interval covers the truth in 92 to 98 % of 400 runs") {
  // Sizes from far below the interval to far above it; 330 samples expected, so fewer than 225 would be 6 sigma off.
  const std::vector<Blocks> held = {{2000, 16}, {1500, 100}, {1200, 1000}, {200, 9000}, {40, 70000}, {4, 1000000}};
  const uint64_t interval = 8192;
  const int runs = 400;
  const double truth = TotalBytes(held);
  int covered = 0;
  double mean = 0, variance = 0;
  uint64_t fewest = UINT64_MAX;
  for (int run = 0; run < runs; run++) {
    Estimate estimate = RunOnce(held, interval, 1 + run);
    fewest = std::min(fewest, estimate.samples);
    if (std::abs(estimate.live_bytes - truth) <= 1.96 * std::sqrt(estimate.live_variance)) covered++;
    mean += estimate.live_bytes / runs;
    variance += estimate.live_variance / runs;
  }
  double true_variance = TrueVariance(held, interval);
  printf("coverage %.1f %% of %d runs, at least %lu samples, mean %+.3f %%, variance %.3f of the true one\n",
         100.0 * covered / runs, runs, fewest, 100 * (mean / truth - 1), variance / true_variance);
  CHECK(fewest >= 225);
  // 95 % +- 2.75 sigma: sqrt(0.95 * 0.05 / 400) = 1.09 %.
  CHECK(covered >= 0.92 * runs);
  CHECK(covered <= 0.98 * runs);
  CHECK(std::abs(mean - truth) < 4 * std::sqrt(true_variance / runs));
  CHECK(std::abs(variance / true_variance - 1) < 0.03);
}

TEST_CASE("The mean estimate is within 1 % of the truth for blocks from 16 B to 16 MiB at a small interval") {
  const uint64_t total = 16 << 20;
  for (uint64_t size = 16; size <= (16 << 20); size *= 4) {
    RequireUnbiased({{std::max<uint64_t>(total / size, 4), size}}, 4096, 10000 + size);
  }
}

TEST_CASE("The mean estimate is within 1 % of the truth around the default interval") {
  const uint64_t total = 1 << 30;
  for (uint64_t size : {65536, 262144, 524287, 524288, 524289, 1048576, 4194304, 16777216}) {
    RequireUnbiased({{total / size, size}}, 512 * 1024, 20000 + size);
  }
}

TEST_CASE("At interval 1 live and allocated bytes are exact") {
  const std::vector<Blocks> held = {{3, 0}, {2000, 16}, {777, 100}, {50, 9001}, {3, 16 << 20}};
  Estimate estimate = RunOnce(held, 1, 5);
  CHECK(estimate.live_bytes == TotalBytes(held));
  CHECK(estimate.live_variance == 0);
  CHECK(estimate.samples == 3 + 2000 + 777 + 50 + 3);
  CHECK(estimate.allocated_bytes == 2 * TotalBytes(held));
  CHECK(estimate.allocated_count == 2 * (3 + 2000 + 777 + 50 + 3));
}

// 10,400 live samples fit into 1 MiB, and 128 MiB at a mean of 4 KiB want 32,768.
TEST_CASE("Where memory runs short the interval doubles and the estimate stays unbiased, its error honest and small") {
  struct Case {
    std::vector<Blocks> held;
    uint64_t interval, last_interval;
  };
  // No interval beyond the last one is needed, for at it the blocks want less than half of the table. The third case
  // has blocks far above the first interval, which thinning cannot touch until the interval has come near them.
  const Case cases[] = {{{{1342177, 100}}, 4096, 32768},
                        {{{20000, 5000}, {200000, 100}, {1, 20000000}}, 1024, 32768},
                        {{{16000, 40000}}, 1024, 131072}};
  for (const Case& kind : cases) {
    const double truth = TotalBytes(kind.held);
    const double most = std::sqrt(TrueVariance(kind.held, kind.last_interval));
    double mean = 0, variance = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
      Estimate estimate = RunOnce(kind.held, kind.interval, seed, ",memory=1m");
      const double error = std::sqrt(estimate.live_variance);
      printf("%9lu B, seed %2lu: %+.2f %%, %+.2f sigma, error %.2f %%, %lu live samples, %lu doublings\n",
             kind.held[0].size, seed, 100 * (estimate.live_bytes / truth - 1), (estimate.live_bytes - truth) / error,
             100 * error / truth, estimate.samples, estimate.interval_doublings);
      CHECK(estimate.interval_doublings >= 3);
      CHECK(std::abs(estimate.live_bytes - truth) < 4 * error);
      CHECK(error < 1.1 * most);
      mean += estimate.live_bytes / 10;
      variance += estimate.live_variance / 10;
    }
    CHECK(std::abs(mean - truth) < 3.5 * std::sqrt(variance / 10));
  }
}

TEST_CASE("The same seed gives the same samples, another seed gives others") {
  const std::vector<Blocks> held = {{5000, 100}, {500, 3000}};
  Estimate first = RunOnce(held, 4096, 42), again = RunOnce(held, 4096, 42), other = RunOnce(held, 4096, 43);
  CHECK(first.live_bytes == again.live_bytes);
  CHECK(first.samples == again.samples);
  CHECK(first.live_bytes != other.live_bytes);
}

}  // namespace
}  // namespace cadastre
