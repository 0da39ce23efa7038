// What `cadastre run` does beside waiting: watches its program as `cadastre watch` would, notes how near to its memory
// limit it is (in the live file, so that this outlives an OOM kill of everybody), looks at who else is started, and
// puts away the profiles of children that have ended and of earlier runs that were killed with their program.
//
// Errors: said once on stderr; nothing here stops the run. Thread-safety: one thread.
//
// Example:
//   RunWatch watch({.settings = settings, .place = *LivePlace::Find("/dev/shm")}, Say);
//   watch.AdoptEarlier();
//   watch.Begin(child.pid());
//   child.Wait(... { watch.Turn(live_file); }, ...);
//   watch.End();
#ifndef CADASTRE_REPORT_CLI_RUN_WATCH_H_
#define CADASTRE_REPORT_CLI_RUN_WATCH_H_

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "report/cli/live_file_watch.h"
#include "report/live_place.h"
#include "report/process_tree.h"
#include "report/process_watch.h"
#include "report/snapshot_plan.h"

namespace cadastre {

struct RunWatchOptions {
  WatchSettings settings;
  uint32_t keep = UINT32_MAX;  // dead profiles of a program, as the option `keep`
  LivePlace place;             // of live files
  std::string output;          // the final profile; empty = the live file is it
};

class RunWatch {
 public:
  RunWatch(RunWatchOptions options, SayFunction say) : options_(std::move(options)), say_(std::move(say)) {}

  // Profiles of earlier runs that nobody could save: a container that was killed as a whole. They go where
  // the output goes; without one they are packed, and moved to another file system if space is short.
  void AdoptEarlier();

  void Begin(pid_t child);
  // Looks at everything; `live` may have a new file.
  void Turn(const LiveFileWatch& live);
  // An orphan that has ended and was not waited for yet (as PID 1).
  void NoteEnding(pid_t pid) {
    if (tree_ != nullptr) tree_->NoteEnding(pid);
  }
  // The program has ended: how its memory stood. Puts away what its children left.
  format::MemoryNote End();

  // "2 processes not recorded: sh, sleep"; empty if all were. `without_root`: what became of the program itself was
  // said.
  // The highest resident size of the program itself. `with_children`: as wait4 has it, which is that of children too
  // that it has waited for. Where there were such it is what was seen last.
  uint64_t OwnPeakBytes(uint64_t with_children) const;
  std::string NotRecorded(bool without_root) const;

 private:
  std::vector<std::string> LiveFiles() const;
  enum class Children { kNone, kEnding, kLive };
  Children SaveChildren();

  RunWatchOptions options_;
  SayFunction say_;
  pid_t child_ = 0;
  uint64_t own_peak_bytes_ = 0;
  std::unique_ptr<ProcessTree> tree_;
  std::unique_ptr<ProcessWatch> watch_;
  std::string watched_path_;
  std::set<std::pair<pid_t, std::string>> recorded_;
  double children_seen_s_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_RUN_WATCH_H_
