#include "report/cli/since.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/growth_snapshot.h"
#include "report/row_growth.h"
#include "report/saved_profiles.h"

namespace cadastre {
namespace {

std::string LabelOf(const std::string& path) { return path.substr(path.rfind('@') + 1); }

// Oldest first by what they say, as copying loses the times of files. Files that are no profiles (an export named like
// a snapshot) are none of ours.
std::vector<std::string> EarlierSnapshots(const ProfilePath& where) {
  ProfileIdentity reported, other;
  if (!IdentityOf(where.path, &reported)) return {};
  std::vector<std::pair<uint64_t, std::string>> earlier;
  for (const std::string& path : SnapshotsOf(where.base)) {
    if (path == where.path || LabelOf(path) == "peak" || !IdentityOf(path, &other)) continue;
    if (other.pid != reported.pid || other.pid_namespace != reported.pid_namespace ||
        other.process_start_ticks != reported.process_start_ticks ||
        other.start_realtime_ns != reported.start_realtime_ns || other.snapshot_realtime_ns == 0) {
      continue;
    }
    const bool later = reported.snapshot_realtime_ns > 0 && other.snapshot_realtime_ns >= reported.snapshot_realtime_ns;
    if (!later) earlier.emplace_back(other.snapshot_realtime_ns, path);
  }
  std::sort(earlier.begin(), earlier.end());
  std::vector<std::string> paths;
  for (auto& [time, path] : earlier) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::string> SpreadEvenly(const std::vector<std::string>& paths) {
  if (paths.size() <= kMostSnapshots) return paths;
  std::vector<std::string> kept;
  for (size_t i = 0; i < kMostSnapshots; i++) kept.push_back(paths[i * (paths.size() - 1) / (kMostSnapshots - 1)]);
  return kept;
}

}  // namespace

absl::Status AddSince(const LoadedProfile& loaded, const std::string& since, const GrowthInput& input, Report* report) {
  if (since == "none") return absl::OkStatus();
  std::vector<std::string> paths = EarlierSnapshots(loaded.where);
  if (!since.empty()) {
    auto from =
        std::find_if(paths.begin(), paths.end(), [&](const std::string& path) { return LabelOf(path) == since; });
    if (from == paths.end()) {
      return absl::NotFoundError(absl::StrCat(
          "--since ", since, ": ", loaded.where.path, " has no earlier snapshot of that label; it has ",
          paths.empty() ? "none" : absl::StrJoin(paths, ", ", [](std::string* out, const std::string& path) {
            out->append(LabelOf(path));
          })));
    }
    paths.erase(paths.begin(), from);
  }
  if (paths.empty()) return absl::OkStatus();  // most profiles; naming each site takes longer than all the rest
  std::vector<GrowthSnapshot> snapshots;
  const GrowthSnapshot now = TakeGrowth(*report, loaded.rules, "now", nullptr);
  for (const std::string& path : SpreadEvenly(paths)) {
    absl::StatusOr<GrowthSnapshot> snapshot = LoadGrowth(path, input, nullptr);
    if (!snapshot.ok()) {
      report->warnings.push_back(absl::StrCat(LabelOf(path), " is left out: ", snapshot.status().message()));
      continue;
    }
    if (snapshot->time_ns >= now.time_ns || (!snapshots.empty() && snapshot->time_ns <= snapshots.back().time_ns))
      continue;
    snapshot->label = LabelOf(path);
    snapshot->warnings.clear();  // of that time
    snapshots.push_back(*std::move(snapshot));
  }
  while (since.empty() && snapshots.size() > 1 && IsCold(snapshots.front(), now)) snapshots.erase(snapshots.begin());
  if (snapshots.empty()) return absl::OkStatus();
  snapshots.push_back(now);
  snapshots.back().warnings.clear();  // the report has them
  absl::StatusOr<Growth> growth = CompareSnapshots(snapshots, {});
  if (!growth.ok()) {
    report->warnings.push_back(absl::StrCat("no growth: ", growth.status().message()));
    return absl::OkStatus();
  }
  AddGrowth(*growth, report);
  report->warnings.insert(report->warnings.end(), growth->warnings.begin(), growth->warnings.end());
  return absl::OkStatus();
}

}  // namespace cadastre
