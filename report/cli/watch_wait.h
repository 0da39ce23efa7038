// Waiting for what ends a watch: a signal, a process's end, or time. And the commands that a watch starts.
//
// Thread-safety: main thread only; blocks SIGTERM, SIGINT and SIGCHLD from the first use on. Errors: without pidfd_open
// (before Linux 5.3) the process is asked for at each turn.
//
// Example:
//   WatchWait wait(4242);
//   while (!wait.For(1.0)) Look();
//   if (wait.process_has_ended()) ...
#ifndef CADASTRE_REPORT_CLI_WATCH_WAIT_H_
#define CADASTRE_REPORT_CLI_WATCH_WAIT_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cadastre {

class WatchWait {
 public:
  explicit WatchWait(pid_t pid);  // 0 = no process
  ~WatchWait();
  WatchWait(const WatchWait&) = delete;

  bool For(double seconds);  // true: it is over
  bool process_has_ended() const { return ended_; }

 private:
  pid_t pid_;
  uint64_t start_ticks_;
  int process_ = -1, signals_ = -1;
  bool ended_ = false, stopped_ = false;
};

// Commands that run beside the watch.
class EndCommands {
 public:
  explicit EndCommands(std::vector<std::string> command) : command_(std::move(command)) {}
  void Start(const std::string& path);  // nothing if there is no command
  void Reap(bool wait);
  bool all_succeeded() const { return failures_ == 0; }

 private:
  std::vector<std::string> command_;
  std::vector<pid_t> running_;
  int failures_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_WATCH_WAIT_H_
