// What several formats say in the same words.
#include <signal.h>
#include <string.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "report/format.h"

namespace cadastre {
namespace {

std::string Plural(uint64_t count, const char* what) {
  return absl::StrCat(FormatCount(static_cast<double>(count)), what, count == 1 ? "" : "s");
}

// The last look is up to a second old, and what a cgroup kills at is its whole usage.
constexpr double kNearLimit = 0.9;

// "3.97 of 4.00 GiB", both in the limit's unit.
std::string UsedOfLimit(const MemoryNote& note) {
  constexpr double kUnits[] = {1024.0 * 1024 * 1024, 1024.0 * 1024, 1024.0};
  constexpr const char* kNames[] = {"GiB", "MiB", "KiB"};
  size_t unit = 0;
  while (unit < 2 && static_cast<double>(note.limit_bytes) < kUnits[unit]) unit++;
  return absl::StrFormat("%.2f of %.2f %s", static_cast<double>(note.used_bytes) / kUnits[unit],
                         static_cast<double>(note.limit_bytes) / kUnits[unit], kNames[unit]);
}

std::string OomText(const Profile& profile) {
  const OomKill kill = OomKillOf(profile);
  if (kill == OomKill::kNo) return "";
  const std::string used =
      profile.memory_note.limit_bytes == 0 ? "" : absl::StrCat(" (", UsedOfLimit(profile.memory_note), ")");
  return absl::StrCat(kill == OomKill::kCounted ? ", OOM kill" : ", OOM likely", used);
}

}  // namespace

OomKill OomKillOf(const Profile& profile) {
  const bool unseen = profile.end == EndState::kLost;
  const bool killed = profile.end == EndState::kSignal && profile.end_value == SIGKILL;
  if (profile.is_snapshot || (!unseen && !killed)) return OomKill::kNo;
  const MemoryNote& note = profile.memory_note;
  if (note.oom_kills > 0) return OomKill::kCounted;
  const bool near = note.limit_bytes > 0 &&
                    static_cast<double>(note.used_bytes) >= kNearLimit * static_cast<double>(note.limit_bytes);
  return near ? OomKill::kLikely : OomKill::kNo;
}

std::string MethodLine(const Report& report) {
  const Losses& losses = report.profile->losses;
  std::string line =
      absl::StrCat("losses ", FormatCount(static_cast<double>(losses.dropped_samples + losses.volume_dropped)));
  const uint64_t mappings = losses.mappings_full + losses.mapping_events_lost;
  if (mappings > 0) absl::StrAppend(&line, ", ", Plural(mappings, " mapping"), " missed");
  if (losses.truncated_stacks > 0) absl::StrAppend(&line, ", ", Plural(losses.truncated_stacks, " cut stack"));
  if (report.unresolved_frames > 0) absl::StrAppend(&line, ", ", Plural(report.unresolved_frames, " unnamed frame"));
  absl::StrAppend(&line, " · ", report.method);
  if (!report.profile->exact()) {
    absl::StrAppend(&line, ", ", FormatInterval(report.profile->current_interval_bytes));
    if (report.profile->interval_changed())
      absl::StrAppend(&line, " (", FormatInterval(report.profile->interval_bytes), " at first)");
  }
  return absl::StrCat(line, ", ", Plural(report.profile->recorded_samples, " sample"));
}

std::string SharedLine(const SharedRow& shared, Metric metric) {
  auto amount = [metric](const Tally& tally) {
    Estimate estimate = EstimateOf(tally, metric);
    return metric == Metric::kCount ? FormatCount(estimate.value, estimate.StandardError())
                                    : FormatBytes(estimate.value, estimate.StandardError());
  };
  std::string creators;
  for (const Row& row : shared.creators)
    absl::StrAppend(&creators, creators.empty() ? "" : ", ", row.name, " ", amount(row.tally));
  if (shared.creators.size() == 1 && !shared.pool)
    creators = absl::StrCat(shared.creators[0].name, " alone: not shared");
  return absl::StrCat(shared.pool ? "pooled in " : "in ", shared.holder, ": ", amount(shared.tally),
                      shared.pool ? ", charged to the first requester of each piece: " : ", created by ", creators);
}

std::string EndText(const Profile& profile) {
  switch (profile.end) {
    case EndState::kRunning:
      return "running";
    case EndState::kExit:
      return profile.end_status_known ? absl::StrCat("ended: exit ", profile.end_value) : "ended: exit";
    case EndState::kSignal: {
      const char* name = sigabbrev_np(profile.end_value);
      return absl::StrCat("ended: signal ", profile.end_value, name == nullptr ? "" : absl::StrCat(" (SIG", name, ")"),
                          OomText(profile));
    }
    case EndState::kExec:
      return "ended: replaced by another program";
    case EndState::kLost:
      return absl::StrCat("ended: lost", OomText(profile));
  }
  return "";
}

std::string EndWord(const Profile& profile) {
  switch (profile.end) {
    case EndState::kRunning:
      return "running";
    case EndState::kExit:
      return "exit";
    case EndState::kSignal:
      return absl::StrCat("signal:", profile.end_value);
    case EndState::kExec:
      return "exec";
    case EndState::kLost:
      return "lost";
  }
  return "";
}

std::string TimeText(uint64_t realtime_ns) {
  absl::Time time = absl::FromUnixNanos(static_cast<int64_t>(realtime_ns));
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", time, absl::UTCTimeZone());
}

}  // namespace cadastre
