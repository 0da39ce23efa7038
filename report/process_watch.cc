#include "report/process_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/clock.h"
#include "report/output_file.h"
#include "report/process_info.h"
#include "report/profile_copy.h"
#include "report/profile_path.h"
#include "report/snapshot_label.h"

namespace cadastre {
namespace {

double NowSeconds() { return static_cast<double>(ClockNow(CLOCK_MONOTONIC)) / 1e9; }

}  // namespace

ProcessWatch::ProcessWatch(const WatchedProcess& process, SayFunction say)
    : process_(process),
      say_(std::move(say)),
      gauge_(process.pid, process.settings.limit_bytes),
      plan_(process.settings),
      oom_kills_before_(gauge_.OomKills()) {
  // A file without a name is reached through a link of the kernel's.
  const int no_link = absl::StrContains(process_.live_path, "/map_files/") ? 0 : O_NOFOLLOW;
  file_ = open(process_.live_path.c_str(), O_RDONLY | no_link | O_CLOEXEC);
  if (file_ < 0) say_(std::string(ErrnoStatus(errno, "cannot open", process_.live_path).message()));
}

ProcessWatch::~ProcessWatch() {
  if (file_ >= 0) close(file_);
}

void ProcessWatch::SayOnce(const std::string& line) {
  if (said_.insert(line).second) say_(line);
}

bool ProcessWatch::HasRoom() {
  struct stat live;
  struct statvfs space;
  const size_t slash = process_.base.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : process_.base.substr(0, slash + 1);
  if (fstat(file_, &live) != 0 || statvfs(directory.c_str(), &space) != 0 || space.f_blocks == 0) return true;
  const uint64_t needed = static_cast<uint64_t>(live.st_blocks) * 512;
  if (needed <= static_cast<uint64_t>(space.f_bavail) * space.f_frsize / 2) return true;
  SayOnce(absl::StrCat("no room for snapshots in ", directory, ": name another directory with -o"));
  return false;
}

void ProcessWatch::RemoveOldPeriodic() {
  std::vector<std::string> periodic = SnapshotsOf(process_.base);
  const std::string prefix = absl::StrCat(process_.base, "@", kPeriodicPrefix);
  std::erase_if(periodic, [&](const std::string& path) { return !absl::StartsWith(path, prefix); });
  std::sort(periodic.begin(), periodic.end());  // the names are times
  for (size_t i = 0; i + process_.settings.keep < periodic.size(); i++) unlink(periodic[i].c_str());
}

void ProcessWatch::Take(const DueSnapshot& due, double now_s) {
  if (!HasRoom()) return;
  CopyOptions options;
  options.label = due.label;
  options.pid = process_.pid;
  options.overwrite = true;
  const absl::Status status =
      CopyProfile(file_, process_.live_path, absl::StrCat(process_.base, "@", due.label), options);
  if (!status.ok()) return SayOnce(std::string(status.message()));
  if (due.is_periodic) RemoveOldPeriodic();
  const double done_s = NowSeconds();
  plan_.TookSeconds(done_s, done_s - now_s);
}

void ProcessWatch::Look() {
  if (file_ < 0) return;
  Observation seen;
  seen.now_s = NowSeconds();
  seen.realtime_ns = RealtimeNow();
  if (process_.pid != 0) {
    seen.rss_bytes = ResidentBytesOf(process_.pid);
    seen.memory = gauge_.Read();
    // A zombie has no memory any more: what it had before it died is what counts.
    if (seen.rss_bytes != 0) {
      note_ = {seen.memory.used_bytes, seen.memory.limit_bytes, seen.realtime_ns, seen.memory.is_of_cgroup, 0};
    }
  }
  for (const DueSnapshot& due : plan_.Next(seen)) Take(due, NowSeconds());
}

format::MemoryNote ProcessWatch::note() const {
  format::MemoryNote note = note_;
  const uint64_t kills = gauge_.OomKills();
  note.oom_kills = kills > oom_kills_before_ ? static_cast<uint32_t>(kills - oom_kills_before_) : 0;
  return note;
}

}  // namespace cadastre
