// Why: every figure of the report rests on the sampler being unbiased. Checked against closed forms with a fixed seed;
// each bound is a stated number of standard deviations, so a failure is a defect, not bad luck.
#include <cmath>
#include <vector>

#include "interposer/fast_math.h"
#include "interposer/sampler.h"
#include "tests/support/catch.h"

namespace cadastre {
namespace {

constexpr double kSigmas = 5;  // 1 in 1.7 million for one comparison

struct Sums {
  double samples = 0, bytes = 0, variance = 0;
};

// What the hooks do with a stream of equal allocations.
Sums Allocate(uint64_t seed, uint64_t size, uint64_t count, uint64_t interval) {
  ThreadState thread{};
  thread.random = seed;
  Sums sums;
  for (uint64_t i = 0; i < count; i++) {
    if (thread.countdown > size) {
      thread.countdown -= size;
      continue;
    }
    SampleDecision decision = DecideSample(&thread, size, interval, false);
    if (!decision.record) continue;
    double w = static_cast<double>(decision.weight_bytes);
    sums.samples++;
    sums.bytes += w;
    sums.variance += w * (w - static_cast<double>(size));
  }
  return sums;
}

TEST_CASE("The logarithm and 1-exp(-x) agree with libm to a few units in the last place") {
  for (double x = 1e-300; x < 1e300; x *= 1.37) {
    INFO(x);
    REQUIRE(std::abs(FastLog(x) - std::log(x)) <= 4e-16 * 8 * std::max(std::abs(std::log(x)), 0.01));
  }
  for (double x = 1e-18; x < 1e3; x *= 1.01) {
    INFO(x);
    REQUIRE(std::abs(OneMinusExpNegative(x) / -std::expm1(-x) - 1) <= 4e-16 * 8);
  }
  REQUIRE(OneMinusExpNegative(0) == 0);
}

TEST_CASE("Gaps are exponential with the interval as mean, never zero") {
  for (uint64_t interval : {64ull, 4096ull, 524288ull, 1ull << 30}) {
    uint64_t random = 42;
    constexpr int kDraws = 200000;
    double sum = 0;
    std::vector<int> decile(10);
    for (int i = 0; i < kDraws; i++) {
      uint64_t gap = DrawGap(&random, interval);
      REQUIRE(gap >= 1);
      sum += static_cast<double>(gap);
      // P(gap <= S) = 1-exp(-S/R) for whole S: the transformed value is uniform.
      double u = -std::expm1(-(static_cast<double>(gap) - 0.5) / static_cast<double>(interval));
      decile[std::min(9, static_cast<int>(u * 10))]++;
    }
    // ceil adds half a byte to the mean; the standard error of the mean is R/sqrt(n).
    double error = static_cast<double>(interval) / std::sqrt(kDraws);
    REQUIRE(std::abs(sum / kDraws - static_cast<double>(interval) - 0.5) < kSigmas * error);
    if (interval < 1000) continue;  // whole bytes are coarse against deciles there
    double chi2 = 0;
    for (int n : decile) chi2 += (n - kDraws / 10.0) * (n - kDraws / 10.0) / (kDraws / 10.0);
    REQUIRE(chi2 < 33.7);  // 9 degrees of freedom, 1 in 10,000
  }
}

TEST_CASE("Sums of weights are unbiased from 1 byte to 64 MiB, with the variance that the records claim") {
  constexpr uint64_t kInterval = 65536;
  uint64_t seed = 7;
  for (uint64_t size : {1ull, 16ull, 100ull, 4096ull, 65535ull, 65536ull, 65537ull, 300000ull, 1ull << 20,
                        (1ull << 20) + 1, 1ull << 26}) {
    const uint64_t count = std::max<uint64_t>(2000, (4000ull * kInterval) / size);
    const Sums sums = Allocate(seed++, size, count, kInterval);
    const double truth = static_cast<double>(size) * static_cast<double>(count);
    const double p = -std::expm1(-static_cast<double>(size) / kInterval);
    const double variance = truth * static_cast<double>(size) * (1 - p) / p;
    INFO("size " << size << " estimate " << sums.bytes << " truth " << truth << " sigma " << std::sqrt(variance));
    REQUIRE(std::abs(sums.bytes - truth) <= kSigmas * std::sqrt(variance) + 0.5 * sums.samples);
    const double n = static_cast<double>(count);
    REQUIRE(std::abs(sums.samples - n * p) <= kSigmas * std::sqrt(n * p * (1 - p)) + 1e-9);
    // The claimed variance is a sum of n*p equal terms w(w-S): its relative error is that of the count.
    if (p < 0.99) REQUIRE(std::abs(sums.variance / variance - 1) < kSigmas * std::sqrt((1 - p) / (n * p)) + 1e-3);
  }
}

TEST_CASE("A stream of mixed sizes is unbiased: unbias each sample, then sum") {
  constexpr uint64_t kInterval = 524288, kRounds = 60000;
  ThreadState thread{};
  thread.random = 99;
  double small = 0, large = 0, small_variance = 0, large_variance = 0;
  for (uint64_t i = 0; i < kRounds; i++) {
    const uint64_t size = i % 4 == 0 ? 1 << 20 : 4096;
    if (thread.countdown > size) {
      thread.countdown -= size;
      continue;
    }
    SampleDecision decision = DecideSample(&thread, size, kInterval, false);
    if (!decision.record) continue;
    double w = static_cast<double>(decision.weight_bytes);
    (size == 4096 ? small : large) += w;
    (size == 4096 ? small_variance : large_variance) += w * (w - static_cast<double>(size));
  }
  REQUIRE(std::abs(small - 4096.0 * kRounds * 3 / 4) < kSigmas * std::sqrt(small_variance));
  REQUIRE(std::abs(large - 1048576.0 * kRounds / 4) < kSigmas * std::sqrt(large_variance));
}

TEST_CASE("An interval that changes in the middle leaves the sums unbiased") {
  constexpr uint64_t kSize = 5000, kCount = 400000;
  ThreadState thread{};
  thread.random = 5;
  double bytes = 0, variance = 0;
  for (uint64_t i = 0; i < kCount; i++) {
    const uint64_t interval = (i / 1000) % 2 == 0 ? 1 << 16 : 1 << 20;
    if (thread.countdown > kSize) {
      thread.countdown -= kSize;
      continue;
    }
    SampleDecision decision = DecideSample(&thread, kSize, interval, false);
    if (!decision.record) continue;
    double w = static_cast<double>(decision.weight_bytes);
    bytes += w;
    variance += w * (w - static_cast<double>(kSize));
  }
  REQUIRE(std::abs(bytes - static_cast<double>(kSize * kCount)) < kSigmas * std::sqrt(variance));
}

TEST_CASE("Exact mode records everything, zero sizes too, and claims no error") {
  ThreadState thread{};
  thread.random = 1;
  for (uint64_t size : {0ull, 1ull, 5ull, 1ull << 40}) {
    SampleDecision decision = DecideSample(&thread, size, 1, false);
    REQUIRE(decision.record);
    REQUIRE(decision.weight_bytes == size);
    REQUIRE(thread.countdown == 0);
  }
}

TEST_CASE("Nothing is recorded while paused, and the countdown keeps looking at the header") {
  ThreadState thread{};
  thread.random = 1;
  for (int i = 0; i < 100; i++) {
    REQUIRE_FALSE(DecideSample(&thread, 1 << 24, 65536, true).record);
    REQUIRE(thread.countdown > 0);
    REQUIRE(thread.countdown <= kCountdownLimitBytes);
  }
}

TEST_CASE("The same seed gives the same samples") {
  REQUIRE(Allocate(3, 1000, 100000, 65536).samples == Allocate(3, 1000, 100000, 65536).samples);
  REQUIRE(Allocate(3, 1000, 100000, 65536).samples != Allocate(4, 1000, 100000, 65536).samples);
}

TEST_CASE("A weight is never less than its block, at any size") {
  for (uint64_t size = 1; size < (1ull << 62); size = size * 3 + 1) {
    for (uint64_t interval : {2ull, 64ull, 65536ull, 524288ull, 1ull << 40}) {
      REQUIRE(SampleWeight(size, interval) >= size);
    }
  }
  REQUIRE(SampleWeight(1, 524288) == 524289);  // R + S/2, rounded: 524288.5
}

}  // namespace
}  // namespace cadastre
