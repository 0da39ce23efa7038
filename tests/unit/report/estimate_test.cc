// Standard errors and rounding: a number that claims more digits than it has, or an error of the wrong size, misleads
// every reader.
#include "report/estimate.h"

#include <cmath>
#include <random>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

TEST_CASE("The error of one sample is sqrt(w(w-S))", "[estimate]") {
  Tally tally;
  tally.AddLive(100, 1000, false);
  REQUIRE(tally.live_bytes == 1000);
  REQUIRE(EstimateOf(tally, Metric::kLive).StandardError() == Approx(std::sqrt(1000.0 * 900.0)));
  REQUIRE(EstimateOf(tally, Metric::kCount).value == Approx(10));
  REQUIRE(EstimateOf(tally, Metric::kCount).StandardError() == Approx(std::sqrt(10.0 * 9.0)));
}

TEST_CASE("Where every allocation is recorded there is no error", "[estimate]") {
  Tally tally;
  for (uint64_t size : {0u, 1u, 4096u}) tally.AddLive(size, size, true);
  REQUIRE(tally.live_bytes == 4097);
  REQUIRE(tally.live_count == 3);
  REQUIRE(EstimateOf(tally, Metric::kLive).StandardError() == 0);
  REQUIRE(EstimateOf(tally, Metric::kCount).StandardError() == 0);
  REQUIRE(tally.old_bytes == 4097);
}

// Closed form: N blocks of S bytes, each kept with p = 1-exp(-S/R): variance of the estimate is N S^2 (1-p)/p.
TEST_CASE("The estimated variance is that of the closed form", "[estimate]") {
  constexpr double kInterval = 4096;
  constexpr int kBlocks = 200000;
  std::mt19937_64 random(1);
  for (double size : {16.0, 1024.0, 4096.0, 16384.0}) {
    double p = 1 - std::exp(-size / kInterval);
    std::bernoulli_distribution sampled(p);
    Tally tally;
    for (int i = 0; i < kBlocks; i++) {
      if (sampled(random))
        tally.AddLive(static_cast<uint64_t>(size), static_cast<uint64_t>(std::llround(size / p)), false);
    }
    double truth = kBlocks * size * size * (1 - p) / p;
    // The variance estimate is truth * (samples / expected samples): its relative error is at most 1/sqrt(expected),
    // here < 4 %. Five sigma.
    double tolerance = 5 / std::sqrt(kBlocks * p) + 0.001;
    REQUIRE(tally.live_variance == Approx(truth).epsilon(tolerance));
    REQUIRE(std::fabs(tally.live_bytes - kBlocks * size) <
            5 * std::sqrt(truth) + kBlocks * p);  // rounding of weights: half a byte each
  }
}

TEST_CASE("Variances of disjoint rows add", "[estimate]") {
  Tally a, b, both;
  a.AddLive(10, 500, false);
  b.AddLive(20, 700, false);
  both.Add(a);
  both.Add(b);
  REQUIRE(both.live_bytes == 1200);
  REQUIRE(both.live_variance == a.live_variance + b.live_variance);
}

TEST_CASE("The error of a share counts what lies outside it", "[estimate]") {
  REQUIRE(ShareErrorPercent({50, 100}, {50, 100}) == Approx(0));  // all of it is always 100 %
  REQUIRE(ShareErrorPercent({50, 0}, {100, 0}) == 0);
  // s = 1/2, var x = 100, var t = 200: (100/4 + 100/4) / 100^2 → sqrt(50)/100
  REQUIRE(ShareErrorPercent({50, 100}, {100, 200}) == Approx(100 * std::sqrt(50.0) / 100));
  REQUIRE(ShareErrorPercent({0, 0}, {0, 0}) == 0);
}

TEST_CASE("Values are rounded where their error begins", "[estimate]") {
  CHECK(FormatBytes(2.0234 * kGiB, 0.0312 * kGiB) == "2.02 GiB ±0.03");
  CHECK(FormatBytes(143.4 * kMiB, 8.4 * kMiB) == "143 MiB ±8");
  CHECK(FormatBytes(31.2 * kMiB, 4.4 * kMiB) == "31 MiB ±4");
  CHECK(FormatBytes(31.26 * kMiB, 1.44 * kMiB) == "31.3 MiB ±1.4");  // one digit of 1.44 would be off by 30 %
  CHECK(FormatBytes(143.4 * kMiB, 12.3 * kMiB) == "143 MiB ±12");
  CHECK(FormatBytes(143.4 * kMiB, 96 * kMiB) == "140 MiB ±100");
  CHECK(FormatBytes(0.2 * kMiB, 0.5 * kMiB) == "200 KiB ±500");
  CHECK(FormatBytes(10 * kMiB, 0) == "10.0 MiB");
  CHECK(FormatBytes(0) == "0 B");
  CHECK(FormatBytes(1023) == "1.00 KiB");
  CHECK(FormatBytes(999) == "999 B");
  CHECK(FormatBytes(5 * kGiB, 100 * kKiB) == "5.00 GiB ±0.01");  // not a row of digits, and never ±0
}

TEST_CASE("Counts, shares and times are as readers say them", "[estimate]") {
  CHECK(FormatCount(9412) == "9,412");
  CHECK(FormatCount(999) == "999");
  CHECK(FormatCount(1234567, 12345) == "1,235,000 ±12,000");
  CHECK(FormatCount(0) == "0");
  CHECK(FormatShare(97.2, 1.2) == "97 %");
  CHECK(FormatShare(1.27, 0.15) == "1.3 %");
  CHECK(FormatShare(0.004, 0.001) == "<0.1 %");
  CHECK(FormatShare(100, 0) == "100 %");
  CHECK(FormatShare(0, 0) == "0 %");
  CHECK(FormatShare(75.94, 1.0) == "76 %");
  CHECK(FormatDuration(312) == "312 s");
  CHECK(FormatDuration(52 * 60) == "52 min");
  CHECK(FormatDuration(3 * 3600 + 20 * 60) == "3 h 20 min");
  CHECK(FormatDuration(98 * 3600) == "4 d 2 h");
  CHECK(FormatInterval(512 * 1024) == "512 KiB");
  CHECK(FormatInterval(1000) == "1000 B");
}

}  // namespace
}  // namespace cadastre
