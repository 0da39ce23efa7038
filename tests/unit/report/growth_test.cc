// The error of a difference, from samples that snapshots share, and series that are short. (Whole histories:
// tests/statistics.) A wrong covariance makes every growth look sure, or none.
#include "report/growth.h"

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "report/format_growth.h"
#include "report/shared_samples.h"
#include "report/site_lines.h"
#include "report/stack_line.h"
#include "report/verdict.h"
#include "tests/support/catch.h"

namespace cadastre {
namespace {

GrowthSnapshot SnapshotAt(double hour, std::vector<GrowthSample> samples, const std::string& process = "p") {
  GrowthSnapshot snapshot;
  snapshot.label = std::to_string(hour);
  snapshot.time_ns = static_cast<uint64_t>(1e18 + hour * 3600e9);
  snapshot.process = process;
  snapshot.method = "sampled, live bytes";
  snapshot.interval_bytes = 1000;
  GrowthSite site;
  site.module = "m";
  site.identity = "1";
  for (const GrowthSample& sample : samples) {
    const auto weight = static_cast<double>(sample.weight_bytes);
    site.estimate.value += weight;
    site.estimate.variance += weight * (weight - static_cast<double>(sample.size_bytes));
  }
  snapshot.total = site.estimate;
  snapshot.sites.push_back(site);
  snapshot.samples = std::move(samples);
  return snapshot;
}

double ErrorOf(const GrowthSnapshot& a, const GrowthSnapshot& b) {
  absl::StatusOr<Growth> growth = CompareSnapshots({a, b}, {});
  REQUIRE(growth.ok());
  return growth->modules.at(0).delta_error;
}

TEST_CASE("What is alive in both cancels, in one process alone", "[growth]") {
  const GrowthSample old{1, 1, 100, 1100, 0}, gone{2, 1, 100, 1100, 0}, fresh{3, 5, 100, 1100, 0};
  const double one = std::sqrt(1100.0 * 1000);
  CHECK(ErrorOf(SnapshotAt(0, {old, gone}), SnapshotAt(1, {old, fresh})) == Approx(one * std::sqrt(2.0)));
  CHECK(ErrorOf(SnapshotAt(0, {old}), SnapshotAt(1, {old})) == Approx(0).margin(1e-6));
  CHECK(ErrorOf(SnapshotAt(0, {old}), SnapshotAt(1, {old}, "q")) == Approx(one * std::sqrt(2.0)));
  // The same address again, later: another block.
  CHECK(ErrorOf(SnapshotAt(0, {old}), SnapshotAt(1, {{1, 9, 100, 1100, 0}})) == Approx(one * std::sqrt(2.0)));
}

// Kept with a half: w' = 2 w about. var = w(w-S) + w'(w'-S) - 2 w'(w-S) where it is kept.
TEST_CASE("Samples that were thinned in between are the same samples", "[growth]") {
  const GrowthSample before{1, 1, 100, 1000, 0};
  GrowthSample after = before;
  after.weight_bytes = 2000;
  const double variance = 1000.0 * 900 + 2000.0 * 1900 - 2 * 2000.0 * 900;
  CHECK(ErrorOf(SnapshotAt(0, {before}), SnapshotAt(1, {after})) == Approx(std::sqrt(variance)));
}

TEST_CASE("The error of a thinned difference is that of many draws", "[growth]") {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> draw(0, 1);
  constexpr int kBlocks = 200, kDraws = 4000;
  const double size = 100, p = 0.1, kept = 0.5;
  double sum = 0, squares = 0, estimated = 0;
  for (int i = 0; i < kDraws; i++) {
    std::vector<GrowthSample> before, after;
    for (uint64_t block = 0; block < kBlocks; block++) {
      if (draw(random) >= p) continue;
      before.push_back({block, 1, 100, static_cast<uint64_t>(size / p), 0});
      if (draw(random) < kept) after.push_back({block, 1, 100, static_cast<uint64_t>(size / p / kept), 0});
    }
    absl::StatusOr<Growth> growth = CompareSnapshots({SnapshotAt(0, before), SnapshotAt(1, after)}, {});
    REQUIRE(growth.ok());
    const GrowthRow& row = growth->modules.at(0);
    sum += row.delta_bytes();
    squares += row.delta_bytes() * row.delta_bytes();
    estimated += row.delta_error * row.delta_error;
  }
  const double variance = squares / kDraws - sum / kDraws * sum / kDraws;
  // A variance of 4,000 draws is known to sqrt(2/4000) = 2.2 %; 4 sigma.
  CHECK(estimated / kDraws == Approx(variance).epsilon(0.09));
  CHECK(std::fabs(sum / kDraws) < 4 * std::sqrt(variance / kDraws));
}

TEST_CASE("Covariance blocks make the matrix", "[growth]") {
  CovarianceSum sum;
  sum.Add({0, 1, 0, 1, 5});
  sum.Add({1, 2, 1, 2, 7});
  sum.Add({0, 0, 2, 2, 3});
  const std::vector<double> wanted = {5, 5, 3, 5, 12, 7, 3, 7, 7};
  CHECK(sum.Matrix(3) == wanted);
  for (size_t i = 0; i < 9; i++) CHECK(sum.At(i / 3, i % 3) == wanted[i]);
}

// A site for each letter, all of 1,000 bytes more at each hour.
GrowthSnapshot Letters(double hour, const std::string& letters) {
  GrowthSnapshot snapshot = SnapshotAt(hour, {});
  snapshot.sites.clear();
  for (char letter : letters) {
    GrowthSite site;
    site.module = "m";
    site.identity = std::to_string(1000 - letter);
    site.stack = SiteLine(std::string("stack ") + letter);
    site.estimate.value = 1e6 + 1000 * hour;
    snapshot.sites.push_back(site);
  }
  snapshot.total.value = static_cast<double>(letters.size()) * (1e6 + 1000 * hour);
  return snapshot;
}

TEST_CASE("Sites that grew alike are printed by their lines, in whatever order they came", "[growth]") {
  absl::StatusOr<Growth> growth = CompareSnapshots({Letters(0, "dacb"), Letters(1, "bdac")}, {});
  REQUIRE(growth.ok());
  auto order = [&](std::optional<size_t> top) {
    std::string letters;
    std::string csv;
    WriteGrowthCsv(*growth, GrowthBy::kSite, top, [&](absl::string_view piece) { absl::StrAppend(&csv, piece); });
    for (size_t at = csv.find("stack ", csv.find('\n')); at != std::string::npos; at = csv.find("stack ", at + 1))
      letters += csv[at + 6];
    return letters;
  };
  CHECK(order(std::nullopt) == "abcd");
  CHECK(order(2) == "ab");
  CHECK(order(0) == "");
}

TEST_CASE("Of sites that grew alike the first by their lines are judged", "[growth]") {
  std::string letters;
  for (char letter = 126; letter > 33; letter--) letters += letter;
  absl::StatusOr<Growth> growth = CompareSnapshots({Letters(0, letters), Letters(1, letters), Letters(2, letters)}, {});
  REQUIRE(growth.ok());
  REQUIRE(growth->sites.size() == letters.size());
  size_t judged = 0;
  for (const GrowthRow& row : growth->sites) {
    if (row.verdict.kind == GrowthKind::kNone) continue;
    CHECK(row.stack.Text() == std::string("stack ") + static_cast<char>(34 + judged));
    judged++;
  }
  CHECK(judged == 50);
}

TEST_CASE("A site's line is its stack's, when the frames are gone", "[growth]") {
  std::vector<Frame> frames(4);
  const char* names[] = {"malloc", "com.acme.Shop.add", "com.acme.Shop.fill", "com.acme.Main.main"};
  for (size_t i = 0; i < frames.size(); i++) {
    frames[i].function = names[i];
    frames[i].java = i > 0;
    frames[i].resolved = true;
  }
  const std::vector<const Frame*> stack = {&frames[0], &frames[1], &frames[2], &frames[3]};
  Frame word;
  word.function = "[stack table full]";
  SiteLines lines(40);
  std::vector<SiteLine> made;
  std::vector<std::string> wanted;
  for (int owner : {-1, 0, 1, 2, 3}) {
    made.push_back(lines.Of(stack, owner, -1));
    wanted.push_back(StackLine(stack, owner, -1, 40));
  }
  made.push_back(lines.Of({&word}, -1, -1));
  wanted.push_back("[stack table full]");
  made.push_back(lines.Of({}, -1, -1));
  wanted.push_back("[no stack]");
  frames.clear();
  for (size_t i = 0; i < made.size(); i++) CHECK(made[i].Text() == wanted[i]);
  CHECK(SiteLine().Text() == "");
}

Verdict Exactly(const std::vector<double>& hours, const std::vector<double>& bytes) {
  Series series{hours, bytes, std::vector<double>(hours.size() * hours.size()), 0};
  return JudgeSeries(series);
}

// Java heaps of three dumps: the platform's 9,006,504 and then nothing, auth's 418,824 and then 418,696.
TEST_CASE("Three exact points: warm-up, leak, and what lies between", "[growth]") {
  CHECK(Exactly({0, 1, 2}, {20e6, 20e6 + 9006504, 20e6 + 9006504}).kind == GrowthKind::kLevellingOff);
  const Verdict leak = Exactly({0, 1, 2}, {1e6, 1e6 + 418824, 1e6 + 418824 + 418696});
  CHECK(leak.kind == GrowthKind::kSteadyGrowth);
  CHECK(*leak.rate_bytes_per_hour == Approx(418760));
  CHECK(Exactly({0, 1, 2}, {1e6, 2e6, 2.2e6}).kind == GrowthKind::kTooNoisy);
  CHECK(Exactly({0, 1, 2}, {1e6, 1e6, 1e6}).kind == GrowthKind::kNoChange);
  CHECK(Exactly({0, 1, 2}, {1e6, 1e6, 3e6}).kind == GrowthKind::kStep);
  CHECK(Exactly({0, 1, 2}, {1e6, 3e6, 1e6}).kind == GrowthKind::kSawtooth);
  CHECK(Exactly({0, 1, 2}, {3e6, 2e6, 1e6}).kind == GrowthKind::kShrinking);
  // Rates, not increments: the second takes ten times as long.
  CHECK(Exactly({0, 1, 11}, {1e6, 2e6, 12e6}).kind == GrowthKind::kSteadyGrowth);
  CHECK(Exactly({0, 1}, {1e6, 2e6}).kind == GrowthKind::kNone);
  CHECK(Exactly({0, 0, 0}, {1e6, 2e6, 3e6}).kind == GrowthKind::kNone);
}

std::vector<double> Half(size_t points) {
  std::vector<double> hours;
  for (size_t i = 0; i < points; i++) hours.push_back(0.5 * static_cast<double>(i));
  return hours;
}

Verdict EachHalfHour(std::vector<double> mebibytes) {
  for (double& value : mebibytes) value *= 1 << 20;
  return Exactly(Half(mebibytes.size()), mebibytes);
}

TEST_CASE("A leak behind a start-up between the first two snapshots is a leak", "[growth]") {
  for (double leaked : {2.0, 4.0, 20.0}) {  // at each snapshot, behind 300
    std::vector<double> series = {100};
    for (int i = 1; i < 12; i++) series.push_back(400 + leaked * i);
    const Verdict verdict = EachHalfHour(series);
    INFO(leaked << ": " << GrowthKindName(verdict.kind) << ": " << verdict.reason);
    CHECK(verdict.kind == GrowthKind::kSteadyGrowth);
    CHECK(verdict.rate_bytes_per_hour.value_or(0) == Approx(2 * leaked * (1 << 20)).epsilon(0.05));
  }
  CHECK(EachHalfHour({100, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404, 404}).kind == GrowthKind::kLevellingOff);
}

TEST_CASE("What still slows down is no steady growth", "[growth]") {
  for (int points : {3, 4, 5, 6, 8, 12, 24, 60}) {
    for (double tau : {0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5}) {  // of the series
      std::vector<double> series;
      for (int i = 0; i < points; i++) series.push_back(100 + 300 * (1 - std::exp(-i / tau / (points - 1))));
      const Verdict verdict = EachHalfHour(series);
      INFO(points << " points, tau " << tau << ": " << GrowthKindName(verdict.kind) << ": " << verdict.reason);
      CHECK((verdict.kind == GrowthKind::kTooNoisy || verdict.kind == GrowthKind::kLevellingOff));
    }
  }
}

TEST_CASE("A bump that went back is no trend, and hides none", "[growth]") {
  for (int points : {6, 8, 12, 24, 60}) {
    for (int at = 1; at + 2 < points; at++) {
      for (int width = 1; width < 4 && at + width + 2 <= points && 3 * width <= points; width++) {
        std::vector<double> bump, leak, dip;
        for (int i = 0; i < points; i++) {
          const bool in = i >= at && i < at + width;
          bump.push_back(in ? 300 : 100);
          dip.push_back(in ? 40 : 100);
          leak.push_back((in ? 300.0 : 100.0) + 3.0 * i);
        }
        INFO(points << " points, " << width << " from " << at << " on");
        CHECK(EachHalfHour(bump).kind == GrowthKind::kSawtooth);
        CHECK(EachHalfHour(dip).kind == GrowthKind::kSawtooth);
        if (points - width >= 6) CHECK(EachHalfHour(leak).kind == GrowthKind::kSteadyGrowth);
      }
    }
  }
  const Verdict rounded = EachHalfHour({100, 100, 100, 130, 180, 200, 180, 130, 100, 100, 100, 100});
  INFO(rounded.reason);
  CHECK(rounded.kind == GrowthKind::kSawtooth);
}

TEST_CASE("Two deploys that need more are two steps", "[growth]") {
  for (int points : {9, 12, 24, 60}) {
    for (double second : {50.0, 20.0, 150.0}) {
      std::vector<double> series;
      for (int i = 0; i < points; i++)
        series.push_back(100 + (3 * i >= points ? 50 : 0) + (3 * i >= 2 * points ? second : 0));
      const Verdict verdict = EachHalfHour(series);
      INFO(points << " points, then " << second << ": " << GrowthKindName(verdict.kind) << ": " << verdict.reason);
      CHECK(verdict.kind == GrowthKind::kStep);
      CHECK(verdict.reason.find("two jumps, +50") == 0);
    }
  }
}

TEST_CASE("Waves that few points show are waves", "[growth]") {
  for (double period : {3.0, 4.0, 5.0, 6.0, 4.8}) {
    for (bool saw : {true, false}) {
      std::vector<double> series, leak;
      for (int i = 0; i < 36; i++) {
        const double turns = i / period, part = turns - std::floor(turns);
        series.push_back(200 + (saw ? 100 * part : 50 * std::sin(2 * M_PI * turns + 0.3)));
        leak.push_back(series.back() + 10.0 * i);
      }
      const Verdict verdict = EachHalfHour(series), leaking = EachHalfHour(leak);
      INFO(period << " points each, " << (saw ? "saw" : "sine") << ": " << GrowthKindName(verdict.kind) << ": "
                  << verdict.reason << "; and a leak: " << leaking.reason);
      CHECK(verdict.kind == GrowthKind::kSawtooth);
      CHECK(leaking.kind == GrowthKind::kSteadyGrowth);
    }
  }
}

TEST_CASE("A verdict says which interval or time would tell", "[growth]") {
  Series series{{0, 1, 2}, {50e6, 60e6, 55e6}, std::vector<double>(9), 4e6};
  for (size_t i = 0; i < 3; i++) series.covariance[i * 4] = 20e6 * 20e6;
  const Verdict verdict = JudgeSeries(series);
  CHECK(verdict.kind == GrowthKind::kTooNoisy);
  CHECK(verdict.reason.find("an interval of ") != std::string::npos);
}

TEST_CASE("Long series are judged by part of their points", "[growth]") {
  std::vector<double> hours, bytes;
  for (int i = 0; i < 1000; i++) {
    hours.push_back(i);
    bytes.push_back(1e8 + 1e6 * i);
  }
  const Verdict verdict = Exactly(hours, bytes);
  CHECK(verdict.kind == GrowthKind::kSteadyGrowth);
  CHECK(*verdict.rate_bytes_per_hour == Approx(1e6));
}

}  // namespace
}  // namespace cadastre
