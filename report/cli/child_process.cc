#include "report/cli/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

constexpr int kPollMilliseconds = 250, kFirstTurnMilliseconds = 20, kTurnMilliseconds = 1000;

// What reaches us and is meant for the program. SIGTSTP, SIGTTIN and SIGTTOU keep their default: the terminal stops the
// whole group.
constexpr int kPassedOn[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (int number : kPassedOn) sigaddset(&set, number);
  return set;
}

}  // namespace

ChildProcess::ChildProcess(const Inherited& inherited) : inherited_(inherited) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  sigaction(SIGCHLD, &old_child_action_, nullptr);
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

absl::Status ChildProcess::Start(const std::vector<std::string>& command, const std::function<void(pid_t)>& prepare,
                                 const std::function<void(pid_t)>& on_fork) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int failed[2], go[2];
  if (pipe2(failed, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0)
    return absl::InternalError(absl::StrCat("cannot make a pipe: ", strerror(errno)));
  // An ignored SIGCHLD, inherited from whoever started us, would leave nothing to wait for. The child gets it back.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &old_child_action_);
  sigset_t watched = WatchedSignals();
  sigprocmask(SIG_BLOCK, &watched, &old_mask_);
  pid_t pid = fork();
  if (pid == 0) {
    char byte;
    close(go[1]);
    while (read(go[0], &byte, 1) < 0 && errno == EINTR) {
    }
    sigaction(SIGCHLD, &old_child_action_, nullptr);
    sigaction(SIGPIPE, &inherited_.pipe, nullptr);
    sigaction(SIGXFSZ, &inherited_.file_size, nullptr);
    prepare(getpid());
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    execvp(arguments[0], arguments.data());
    int error = errno;
    (void)!write(failed[1], &error, sizeof(error));
    _exit(126);
  }
  int fork_error = errno;
  close(failed[1]);
  close(go[0]);
  if (pid < 0) {
    close(failed[0]);
    close(go[1]);
    sigaction(SIGCHLD, &old_child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    return absl::InternalError(absl::StrCat("cannot start a process: ", strerror(fork_error)));
  }
  pid_ = pid;
  on_fork(pid);
  close(go[1]);
  int error = 0;
  ssize_t got;
  while ((got = read(failed[0], &error, sizeof(error))) < 0 && errno == EINTR) {
  }
  close(failed[0]);
  if (got != sizeof(error)) return absl::OkStatus();
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  start_failure_ = error == ENOENT ? 127 : 126;
  return absl::NotFoundError(absl::StrCat("cannot run ", command[0], ": ", strerror(error)));
}

bool ChildProcess::Reap(const std::function<void(pid_t)>& on_orphan) {
  for (;;) {
    siginfo_t next{};
    if (getpid() == 1 && waitid(P_ALL, 0, &next, WEXITED | WNOHANG | WNOWAIT) == 0 && next.si_pid > 0 &&
        next.si_pid != pid_)
      on_orphan(next.si_pid);
    int status = 0;
    rusage usage{};
    // As PID 1 every orphan is ours; otherwise only the child is waited for.
    pid_t pid = wait4(getpid() == 1 ? -1 : pid_, &status, WNOHANG | WUNTRACED, &usage);
    if (pid < 0 && errno == EINTR) continue;
    if (pid <= 0) return pid < 0;
    if (pid != pid_) continue;
    if (WIFSTOPPED(status)) {
      // Whoever started us must see the stop, as it would have seen the program's. PID 1 cannot be stopped.
      if (getpid() != 1) kill(getpid(), SIGSTOP);
      continue;
    }
    wait_status_ = status;
    usage_ = usage;
    return true;
  }
}

void ChildProcess::PassOn(int signal_descriptor) {
  signalfd_siginfo info;
  while (read(signal_descriptor, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo == SIGCHLD) continue;
    // From the terminal (SI_KERNEL) it went to the whole group, the program included. SIGCONT after a stop is always
    // passed on: it does no harm to a program that runs.
    bool from_terminal = info.ssi_code == SI_KERNEL;
    bool from_child = info.ssi_code == SI_USER && info.ssi_pid == static_cast<uint32_t>(pid_);
    if ((from_terminal && info.ssi_signo != SIGCONT) || from_child) continue;
    kill(pid_, static_cast<int>(info.ssi_signo));
  }
}

void ChildProcess::Wait(const std::function<void()>& on_event, int event_descriptor,
                        const std::function<void(pid_t)>& on_orphan) {
  sigset_t watched = WatchedSignals();
  int signals = signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  const int longest = event_descriptor < 0 || signals < 0 ? kPollMilliseconds : kTurnMilliseconds;
  int turn = kFirstTurnMilliseconds;
  for (;;) {
    pollfd polled[2] = {{signals, POLLIN, 0}, {event_descriptor, POLLIN, 0}};
    poll(polled, 2, turn);
    turn = std::min(2 * turn, longest);
    if (signals >= 0) PassOn(signals);
    if (Reap(on_orphan)) break;
    on_event();
  }
  if (signals >= 0) close(signals);
}

int ChildProcess::ExitStatus() const {
  return WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
}

}  // namespace cadastre
