// What a user types for P → the file to read: a path, a PID, or one of them with @LABEL, @peak, @last or @UPTIME.
//
// Snapshots are sibling files named "<profile>@<label>"; those of another process are found by their label alone.
// `P@last` is the newest of them (the peak aside), `P@peak` is the one labelled so or, as a live file keeps the values
// of its peak, the profile itself with the metric peak; `P@2h` is the one whose uptime is nearest to two hours, an
// error if the process was never up that long. Errors: NotFound with the reason and, for a label, those that exist.
// Thread-safety: reads files.
//
// Example: absl::StatusOr<ProfilePath> found = FindProfile("4242@last");
#ifndef CADASTRE_REPORT_PROFILE_PATH_H_
#define CADASTRE_REPORT_PROFILE_PATH_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cadastre {

struct ProfilePath {
  std::string path;      // open this
  std::string base;      // the profile without @..., where its snapshots lie; differs from `path` for snapshots
  pid_t pid = 0;         // if a PID was typed
  std::string note;      // what the user should know: P@2h is a snapshot at 1h, or one of another process
  bool at_peak = false;  // P@peak without a snapshot of that label: read the peak's values
};

absl::StatusOr<ProfilePath> FindProfile(const std::string& argument);

// Paths of the snapshots of this profile, oldest first.
std::vector<std::string> SnapshotsOf(const std::string& profile_path);

// "10m", "2h", "1h30m", "90s", "2d", "250ms" → seconds.
std::optional<double> ParseDurationSeconds(const std::string& text);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PROFILE_PATH_H_
