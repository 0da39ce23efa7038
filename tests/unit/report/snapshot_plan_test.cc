// When a watched process is due for a snapshot: decided from what was seen, so each rule is one list of observations.
#include "report/snapshot_plan.h"

#include "tests/support/catch.h"

namespace cadastre {
namespace {

constexpr uint64_t kMib = 1 << 20;

Observation Seen(double now_s, uint64_t rss, uint64_t used = 0, uint64_t limit = 0) {
  Observation seen;
  seen.now_s = now_s;
  seen.realtime_ns = 1'000'000'000'000'000'000 + static_cast<uint64_t>(now_s * 1e9);
  seen.rss_bytes = rss;
  seen.memory = {used, limit, true};
  return seen;
}

std::string Labels(SnapshotPlan& plan, const Observation& seen) {
  std::string text;
  for (const DueSnapshot& due : plan.Next(seen)) text += (text.empty() ? "" : " ") + due.label;
  return text;
}

TEST_CASE("Periodic snapshots come at their times and are named by the clock", "[snapshot_plan]") {
  SnapshotPlan plan({.every_s = 60});
  CHECK(Labels(plan, Seen(0, 0)) == "");
  CHECK(Labels(plan, Seen(59, 0)) == "");
  CHECK(Labels(plan, Seen(60, 0)) == "every-20010909T014740Z");
  CHECK(Labels(plan, Seen(61, 0)) == "");
  // Late by four: one now, the next when it would have been.
  CHECK(Labels(plan, Seen(310, 0)) == "every-20010909T015150Z");
  CHECK(Labels(plan, Seen(359, 0)) == "");
  CHECK(Labels(plan, Seen(360, 0)) != "");
  CHECK(plan.Next(Seen(420, 0)).at(0).is_periodic);
}

TEST_CASE("A threshold counts once, and again after the use has fallen well below it", "[snapshot_plan]") {
  SnapshotPlan plan({.at_percent = {90, 66, 75}});
  CHECK(Labels(plan, Seen(0, 0, 65, 100)) == "");
  CHECK(Labels(plan, Seen(1, 0, 66, 100)) == "at-66");
  CHECK(Labels(plan, Seen(2, 0, 70, 100)) == "");
  CHECK(Labels(plan, Seen(3, 0, 60, 100)) == "");
  CHECK(Labels(plan, Seen(4, 0, 70, 100)) == "");
  CHECK(Labels(plan, Seen(5, 0, 55, 100)) == "");
  CHECK(Labels(plan, Seen(6, 0, 95, 100)) == "at-90");  // the highest of three
  CHECK(Labels(plan, Seen(7, 0, 80, 100)) == "");
  CHECK(Labels(plan, Seen(8, 0, 1000, 0)) == "");  // no limit
}

TEST_CASE("The peak is taken again when it has grown by some per cent", "[snapshot_plan]") {
  SnapshotPlan plan({});
  CHECK(Labels(plan, Seen(0, 50 * kMib)) == "");  // starting up
  CHECK(Labels(plan, Seen(1, 100 * kMib)) == "peak");
  CHECK(Labels(plan, Seen(2, 104 * kMib)) == "");
  CHECK(Labels(plan, Seen(3, 105 * kMib)) == "peak");
  CHECK(Labels(plan, Seen(4, 20 * kMib)) == "");
  CHECK(Labels(plan, Seen(5, 108 * kMib)) == "");
  CHECK(Labels(plan, Seen(64, 108 * kMib)) == "peak");  // little, but a minute has passed
  CHECK(Labels(plan, Seen(200, 108 * kMib)) == "");
}

TEST_CASE("A peak that was dear to copy is not copied again at once", "[snapshot_plan]") {
  SnapshotPlan plan({});
  (void)plan.Next(Seen(0, 1));
  CHECK(Labels(plan, Seen(1, 100 * kMib)) == "peak");
  plan.TookSeconds(1, 0.5);
  CHECK(Labels(plan, Seen(10, 200 * kMib)) == "");
  CHECK(Labels(plan, Seen(11, 200 * kMib)) == "peak");
  plan.TookSeconds(11, 0);
  CHECK(Labels(plan, Seen(11.5, 300 * kMib)) == "");
  CHECK(Labels(plan, Seen(12, 300 * kMib)) == "peak");
}

TEST_CASE("The flags of a watch are read, and what is none is refused", "[snapshot_plan]") {
  absl::StatusOr<WatchSettings> settings = ParseWatchSettings("10m", "12", "90,66,66,75.5", "1g");
  REQUIRE(settings.ok());
  CHECK(settings->every_s == 600);
  CHECK(settings->keep == 12);
  CHECK(settings->at_percent == std::vector<double>{66, 75.5, 90});
  CHECK(settings->limit_bytes == 1024 * kMib);
  CHECK(ParseWatchSettings("", "all", "", "")->keep == UINT32_MAX);
  for (const char* bad : {"0", "10", "0.5s", "soon"}) CHECK_FALSE(ParseWatchSettings(bad, "", "", "").ok());
  for (const char* bad : {"0", "-1", "many"}) CHECK_FALSE(ParseWatchSettings("", bad, "", "").ok());
  for (const char* bad : {"0", "101", "66,", "x", "nan"}) CHECK_FALSE(ParseWatchSettings("", "", bad, "").ok());
  for (const char* bad : {"0", "1x", "-5m"}) CHECK_FALSE(ParseWatchSettings("", "", "", bad).ok());
}

}  // namespace
}  // namespace cadastre
