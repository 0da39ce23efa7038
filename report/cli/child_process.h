// The program that `cadastre run` starts: as if it had been started without us.
//
// It shares our process group and terminal, so Ctrl-C and Ctrl-Z reach it from the kernel. We stay out of the way:
// signals that the terminal sent to the whole group are not sent twice; what somebody sent to us alone is passed on;
// when it stops we stop, when we are continued it is continued. As PID 1 of a container we reap what is left to us.
// It inherits what we did: descriptors (all of ours are closed on exec), signal dispositions and mask.
// Errors: Start says that there can be no process at all; after Wait, start_error that the command was none. ExitStatus
// is then what a shell would have ended with (127 not found, 126 cannot be run). Needs no descriptor that must be had.
// Thread-safety: one child, one thread; blocks signals of the calling process from Start to the end.
//
// Example:
//   ChildProcess child(inherited);
//   if (absl::Status status = child.Start(command, [](pid_t) { setenv("X", "1", 1); }, [](pid_t) {}); !status.ok()) ...
//   child.Wait([&] { watch.Poll(); }, watch.descriptor(), [](pid_t) {});
//   return child.ExitStatus();
#ifndef CADASTRE_REPORT_CLI_CHILD_PROCESS_H_
#define CADASTRE_REPORT_CLI_CHILD_PROCESS_H_

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace cadastre {

class ChildProcess {
 public:
  // What we inherited for the signals that we ignore, and the child is to inherit. The default is the system's.
  struct Inherited {
    struct sigaction pipe {
    }, file_size{};
  };
  explicit ChildProcess(const Inherited& inherited);
  ChildProcess() : ChildProcess(Inherited()) {}
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;

  // Forks; the child calls prepare(its pid), which may change the environment, and becomes `command`, looked up in
  // PATH. prepare also runs in the parent's view: on_fork(pid) is called there before the child may go on.
  absl::Status Start(const std::vector<std::string>& command, const std::function<void(pid_t)>& prepare,
                     const std::function<void(pid_t)>& on_fork);

  // Waits for the end. Calls `on_event` whenever `event_descriptor` is readable, and now and then: often at first, then
  // once a second, four times if the descriptor is -1. As PID 1, calls `on_orphan` for each other process that has
  // ended, before it is reaped.
  void Wait(
      const std::function<void()>& on_event, int event_descriptor,
      const std::function<void(pid_t)>& on_orphan = [](pid_t) {});

  pid_t pid() const { return pid_; }
  int wait_status() const { return wait_status_; }
  const rusage& usage() const { return usage_; }
  int ExitStatus() const;            // as a shell says it: 128+N for a signal
  absl::Status start_error() const;  // why the command could not be run

 private:
  bool Reap(const std::function<void(pid_t)>& on_orphan);  // true: the child has ended
  void PassOn(const siginfo_t& info);

  struct Shared;
  Shared* shared_ = nullptr;
  std::string command_;
  pid_t pid_ = -1;
  int wait_status_ = 0;
  rusage usage_{};
  sigset_t old_mask_{};
  Inherited inherited_;
  struct sigaction old_child_action_ {};
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_CHILD_PROCESS_H_
