// One recorded process that is watched from outside: looks at it when told to, takes the snapshots that are due, and
// remembers how its memory stood, for when it is gone. Reads only: no thread, no signal, no word in the target.
//
// Snapshots are "BASE@LABEL"; those of an earlier process under the same names are replaced. A snapshot is not taken
// where it would need more than half of the space that is left. What fails is said once. Units: bytes, seconds.
// Thread-safety: one thread.
//
// Example:
//   ProcessWatch watch({.settings = settings, .pid = 4242, .live_path = path, .base = path}, say);
//   while (alive) { watch.Look(); sleep(1); }
//   format::MemoryNote note = watch.note();
#ifndef CADASTRE_REPORT_PROCESS_WATCH_H_
#define CADASTRE_REPORT_PROCESS_WATCH_H_

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>

#include "interposer/profile_format.h"
#include "report/memory_gauge.h"
#include "report/snapshot_plan.h"

namespace cadastre {

struct WatchedProcess {
  WatchSettings settings;
  pid_t pid = 0;          // as we know it; 0 = not known: periodic snapshots only
  std::string live_path;  // opened once, so that a later name does not matter
  std::string base;       // of its snapshots
};

using SayFunction = std::function<void(const std::string&)>;

class ProcessWatch {
 public:
  ProcessWatch(const WatchedProcess& process, SayFunction say);
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;

  bool is_open() const { return file_ >= 0; }
  int file() const { return file_; }
  const std::string& live_path() const { return process_.live_path; }
  const std::string& base() const { return process_.base; }
  pid_t pid() const { return process_.pid; }

  // Takes what is due.
  void Look();
  // How its memory stood at the last look, and whether its cgroup has counted an OOM kill since; asks again for the
  // latter.
  format::MemoryNote note() const;
  bool has_limit() const { return gauge_.Read().limit_bytes > 0; }

 private:
  void Take(const DueSnapshot& due, double now_s);
  void RemoveOldPeriodic();
  bool HasRoom();
  void SayOnce(const std::string& line);

  WatchedProcess process_;
  SayFunction say_;
  MemoryGauge gauge_;
  SnapshotPlan plan_;
  uint64_t oom_kills_before_;
  format::MemoryNote note_{};
  std::set<std::string> said_;
  int file_ = -1;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PROCESS_WATCH_H_
