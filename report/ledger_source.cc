#include "report/ledger_source.h"

#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/process_info.h"
#include "report/profile_path.h"

namespace cadastre {

pid_t ProcessOfProfile(const Profile& profile, pid_t pid) {
  return pid != 0 ? pid : RunningProcessOf(profile.pid, profile.pid_namespace, profile.process_start_ticks);
}

pid_t TypedPid(const std::string& argument) {
  int pid = 0;
  const bool number = !argument.empty() && argument.find_first_not_of("0123456789") == std::string::npos;
  return number && absl::SimpleAtoi(argument, &pid) && pid > 0 && access(argument.c_str(), F_OK) != 0 ? pid : 0;
}

absl::StatusOr<ProcessMemory> MemoryForProfile(const Profile& profile, pid_t pid, const CollectOptions& options) {
  if (profile.process.has_value()) {
    if (options.nmt_problem != nullptr && profile.process->nmt.empty() &&
        (options.nmt == NmtWanted::kSummary || options.nmt == NmtWanted::kDetail))
      *options.nmt_problem = "the snapshot holds no report of native memory tracking";
    return *profile.process;
  }
  const pid_t running = profile.is_snapshot ? 0 : ProcessOfProfile(profile, pid);
  if (running != 0) return CollectProcessMemory(running, options);
  const std::vector<std::string> snapshots =
      profile.is_snapshot ? std::vector<std::string>() : SnapshotsOf(profile.path);
  return absl::NotFoundError(
      absl::StrCat(profile.path,
                   profile.is_snapshot ? ": the snapshot does not say what was resident"
                                       : ": the process has ended, and what was resident went with it",
                   snapshots.empty() ? "; `cadastre snapshot` of a running process keeps it"
                                     : absl::StrCat("; see its snapshots: ", absl::StrJoin(snapshots, ", "))));
}

}  // namespace cadastre
