// When a watched process is due for a snapshot: every so often, near a memory limit, and at its highest RSS. Decides
// only; whoever asks takes the snapshot.
//
//   every-20261130T102000Z  periodic
//   at-75                   when its memory reached 75 % of the limit; taken once, and again, in its place, when it has
//                           fallen ten points below meanwhile. Of several that are passed at once, the highest alone.
//   peak                    the highest RSS seen; in place of the last one when RSS has grown by 5 %, or by 1 % in a
//                           minute; not in the first second, when a program starts up
// Units: bytes, seconds of a clock that never goes back. Thread-safety: plain object, one thread.
//
// Example:
//   SnapshotPlan plan({.every_s = 600, .at_percent = {75, 90}});
//   for (const DueSnapshot& due : plan.Next({.now_s = 1200, .rss_bytes = 1 << 30})) Take(due.label);
#ifndef CADASTRE_REPORT_SNAPSHOT_PLAN_H_
#define CADASTRE_REPORT_SNAPSHOT_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/memory_gauge.h"

namespace cadastre {

struct WatchSettings {
  double every_s = 0;   // 0 = no periodic ones
  uint32_t keep = 144;  // of the periodic ones: a day of ten minutes
  std::vector<double> at_percent;
  uint64_t limit_bytes = 0;  // 0 = the cgroup's
};

// The flags of `watch` and `run`, as typed; empty = not given.
absl::StatusOr<WatchSettings> ParseWatchSettings(const std::string& every, const std::string& keep,
                                                 const std::string& at, const std::string& limit);

struct Observation {
  double now_s = 0;
  uint64_t realtime_ns = 0;
  uint64_t rss_bytes = 0;  // 0 = not known
  MemoryUse memory;
};

struct DueSnapshot {
  std::string label;
  bool is_periodic = false;
};

class SnapshotPlan {
 public:
  explicit SnapshotPlan(const WatchSettings& settings);

  // What is due now, and counts as taken.
  std::vector<DueSnapshot> Next(const Observation& seen);

  // Taking one took so long: the next @peak waits a second, and until that is 5 % of the time.
  void TookSeconds(double now_s, double seconds) { peak_not_before_s_ = now_s + std::max(1.0, seconds * 20); }

 private:
  struct Threshold {
    double percent;
    bool passed;
  };
  bool PeriodicIsDue(double now_s);
  bool PeakIsDue(const Observation& seen);
  const Threshold* ThresholdDue(const MemoryUse& memory);

  WatchSettings settings_;
  std::vector<Threshold> thresholds_;  // ascending
  double next_periodic_s_ = -1, peak_taken_s_ = 0, peak_not_before_s_ = -1;
  uint64_t peak_rss_bytes_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SNAPSHOT_PLAN_H_
