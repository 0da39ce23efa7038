// What `cadastre watch` does between its flags and its end: waits, looks, saves what dead processes left, tells whoever
// wants to know. stdout gets the path of each saved profile, stderr the rest.
//
// Ends: of a process, when that has ended; of a directory, at SIGTERM or SIGINT, after a last look. Errors:
// kExitUnusable after one line for what cannot be watched at all; what goes wrong later is said once and the watch goes
// on. Thread-safety: main thread only; blocks SIGTERM, SIGINT and SIGCHLD.
//
// Example: return WatchProcess(4242, {.settings = settings, .output = "/profiles"});
#ifndef CADASTRE_REPORT_CLI_WATCH_LOOP_H_
#define CADASTRE_REPORT_CLI_WATCH_LOOP_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "report/snapshot_plan.h"

namespace cadastre {

struct WatchOptions {
  WatchSettings settings;
  bool at_was_asked = false;        // --at was given: say it where there is no limit
  std::string output;               // directory of what is saved; empty = where the profile is
  std::string exe = "*";            // of a directory: programs that are meant
  std::vector<std::string> on_end;  // command, gets the path of each saved profile as its last argument
};

int WatchProcess(pid_t pid, const WatchOptions& options);
int WatchDirectory(const std::string& directory, const WatchOptions& options);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_WATCH_LOOP_H_
