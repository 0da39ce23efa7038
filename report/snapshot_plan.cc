#include "report/snapshot_plan.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "interposer/options.h"
#include "report/profile_path.h"
#include "report/snapshot_label.h"

namespace cadastre {
namespace {

constexpr double kRearmPoints = 10;  // percent of the limit
constexpr double kPeakGrowth = 1.05, kSlowPeakGrowth = 1.01, kSlowPeakSeconds = 60;
constexpr double kStartUpSeconds = 1;

absl::StatusOr<std::vector<double>> ParsePercents(const std::string& text) {
  std::vector<double> percents;
  for (absl::string_view item : absl::StrSplit(text, ',')) {
    double percent = 0;
    if (!absl::SimpleAtod(item, &percent) || !(percent > 0 && percent <= 100))
      return absl::InvalidArgumentError(
          absl::StrCat("--at ", text, ": write percentages of the memory limit, as in 66,75,90"));
    percents.push_back(percent);
  }
  std::sort(percents.begin(), percents.end());
  percents.erase(std::unique(percents.begin(), percents.end()), percents.end());
  return percents;
}

}  // namespace

absl::StatusOr<WatchSettings> ParseWatchSettings(const std::string& every, const std::string& keep,
                                                 const std::string& at, const std::string& limit) {
  WatchSettings settings;
  if (!every.empty()) {
    std::optional<double> seconds = ParseDurationSeconds(every);
    if (!seconds.has_value() || *seconds < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("--every ", every, ": write a time of at least a second, as in 90s, 10m or 1h"));
    settings.every_s = *seconds;
  }
  if (!keep.empty() && keep != "all" && (!absl::SimpleAtoi(keep, &settings.keep) || settings.keep == 0))
    return absl::InvalidArgumentError(absl::StrCat("--keep ", keep, ": write a number from 1 on, or all"));
  if (keep == "all") settings.keep = UINT32_MAX;
  if (!at.empty()) {
    absl::StatusOr<std::vector<double>> percents = ParsePercents(at);
    if (!percents.ok()) return percents.status();
    settings.at_percent = *percents;
  }
  if (!limit.empty() && (!ParseSize(limit.data(), limit.size(), &settings.limit_bytes) || settings.limit_bytes == 0))
    return absl::InvalidArgumentError(absl::StrCat("--limit ", limit, ": write a size, as in 512m or 4g"));
  return settings;
}

SnapshotPlan::SnapshotPlan(const WatchSettings& settings) : settings_(settings) {
  for (double percent : settings.at_percent) thresholds_.push_back({percent, false});
  std::sort(thresholds_.begin(), thresholds_.end(),
            [](const Threshold& a, const Threshold& b) { return a.percent < b.percent; });
}

bool SnapshotPlan::PeriodicIsDue(double now_s) {
  if (settings_.every_s <= 0) return false;
  if (next_periodic_s_ < 0) next_periodic_s_ = now_s + settings_.every_s;
  if (now_s < next_periodic_s_) return false;
  // Late ones are not made up for: one now, the next when it would have been.
  while (next_periodic_s_ <= now_s) next_periodic_s_ += settings_.every_s;
  return true;
}

bool SnapshotPlan::PeakIsDue(const Observation& seen) {
  if (peak_not_before_s_ < 0) peak_not_before_s_ = seen.now_s + kStartUpSeconds;
  if (seen.rss_bytes == 0 || seen.now_s < peak_not_before_s_) return false;
  const auto rss = static_cast<double>(seen.rss_bytes), peak = static_cast<double>(peak_rss_bytes_);
  const bool slow = seen.now_s - peak_taken_s_ >= kSlowPeakSeconds && rss >= peak * kSlowPeakGrowth;
  if (peak_rss_bytes_ != 0 && rss < peak * kPeakGrowth && !slow) return false;
  peak_rss_bytes_ = seen.rss_bytes;
  peak_taken_s_ = seen.now_s;
  return true;
}

const SnapshotPlan::Threshold* SnapshotPlan::ThresholdDue(const MemoryUse& memory) {
  if (memory.limit_bytes == 0) return nullptr;
  const double percent = 100.0 * static_cast<double>(memory.used_bytes) / static_cast<double>(memory.limit_bytes);
  const Threshold* due = nullptr;
  for (Threshold& threshold : thresholds_) {
    if (percent >= threshold.percent) {
      if (!threshold.passed) due = &threshold;
      threshold.passed = true;
    } else if (percent < threshold.percent - kRearmPoints) {
      threshold.passed = false;
    }
  }
  return due;
}

std::vector<DueSnapshot> SnapshotPlan::Next(const Observation& seen) {
  std::vector<DueSnapshot> due;
  // The one that may be the last comes first.
  if (const Threshold* threshold = ThresholdDue(seen.memory))
    due.push_back({absl::StrCat(kThresholdPrefix, threshold->percent)});
  if (PeakIsDue(seen)) due.push_back({"peak"});
  if (PeriodicIsDue(seen.now_s)) {
    const absl::Time time = absl::FromUnixNanos(static_cast<int64_t>(seen.realtime_ns));
    due.push_back({absl::StrCat(kPeriodicPrefix, absl::FormatTime("%Y%m%dT%H%M%SZ", time, absl::UTCTimeZone())), true});
  }
  return due;
}

}  // namespace cadastre
