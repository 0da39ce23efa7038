#include "report/cli/child_process.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

constexpr int kPollMilliseconds = 250, kFirstTurnMilliseconds = 20, kTurnMilliseconds = 1000;

// Whatever reaches us is meant for the program, except: what cannot be caught; what the kernel sends for a fault of our
// own; SIGTTIN and SIGTTOU, which the terminal sends for what we do. A stop (SIGTSTP) is the program's first: if it
// stops, so do we. (SIGPIPE and SIGXFSZ for writes of our own say that they come from ourselves.)
sigset_t WatchedSignals() {
  constexpr int kOurs[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                           SIGTRAP, SIGSYS,  SIGABRT, SIGTTIN, SIGTTOU};
  sigset_t set;
  sigfillset(&set);  // without those that libc keeps for itself
  for (int number : kOurs) sigdelset(&set, number);
  return set;
}

// As a shell ends.
constexpr int kNotFound = 127, kCannotRun = 126;

void WaitWhileZero(std::atomic<uint32_t>* word) {
  const timespec longest = {0, 100'000'000};
  syscall(SYS_futex, word, FUTEX_WAIT, 0, &longest, nullptr, 0);
}

}  // namespace

// What parent and child know in common. No descriptors: the program may have been left none to spare.
struct ChildProcess::Shared {
  std::atomic<uint32_t> may_go;
  std::atomic<int> exec_error;
};

ChildProcess::ChildProcess(const Inherited& inherited) : inherited_(inherited) {}

ChildProcess::~ChildProcess() {
  if (shared_ != nullptr) munmap(shared_, sizeof(Shared));
  if (pid_ < 0) return;
  sigaction(SIGCHLD, &old_child_action_, nullptr);
  sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

absl::Status ChildProcess::Start(const std::vector<std::string>& command, const std::function<void(pid_t)>& prepare,
                                 const std::function<void(pid_t)>& on_fork) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  command_ = command[0];
  void* page = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return absl::InternalError(absl::StrCat("cannot start a process: ", strerror(errno)));
  shared_ = new (page) Shared();
  // An ignored SIGCHLD, inherited from whoever started us, would leave nothing to wait for. The child gets it back.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &old_child_action_);
  sigset_t watched = WatchedSignals();
  sigprocmask(SIG_BLOCK, &watched, &old_mask_);
  const pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) {
    while (shared_->may_go == 0 && getppid() == parent) WaitWhileZero(&shared_->may_go);
    if (shared_->may_go == 0) _exit(kCannotRun);  // nobody waits for us any more
    sigaction(SIGCHLD, &old_child_action_, nullptr);
    sigaction(SIGPIPE, &inherited_.pipe, nullptr);
    sigaction(SIGXFSZ, &inherited_.file_size, nullptr);
    prepare(getpid());
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    shared_->exec_error = error;
    _exit(error == ENOENT ? kNotFound : kCannotRun);
  }
  if (pid < 0) {
    const int error = errno;
    sigaction(SIGCHLD, &old_child_action_, nullptr);
    sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    wait_status_ = W_EXITCODE(kCannotRun, 0);
    return absl::InternalError(absl::StrCat("cannot start a process: ", strerror(error)));
  }
  pid_ = pid;
  on_fork(pid);
  shared_->may_go = 1;
  syscall(SYS_futex, &shared_->may_go, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  return absl::OkStatus();
}

absl::Status ChildProcess::start_error() const {
  const int error = shared_ != nullptr ? shared_->exec_error.load() : 0;
  if (error == 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("cannot run ", command_, ": ", strerror(error)));
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

void ChildProcess::PassOn(const siginfo_t& info) {
  if (info.si_signo == SIGCHLD) return;
  // From the terminal (SI_KERNEL) it went to the whole group, the program included. SIGCONT after a stop is always
  // passed on: it does no harm to a program that runs.
  const bool from_terminal = info.si_code == SI_KERNEL;
  const bool from_child = info.si_code == SI_USER && info.si_pid == pid_;
  if (info.si_code == SI_USER && info.si_pid == getpid()) return;
  if ((from_terminal && info.si_signo != SIGCONT) || from_child) return;
  if (info.si_code == SI_QUEUE) {
    sigqueue(pid_, info.si_signo, info.si_value);
  } else {
    kill(pid_, info.si_signo);
  }
}

void ChildProcess::Wait(const std::function<void()>& on_event, int event_descriptor,
                        const std::function<void(pid_t)>& on_orphan) {
  const sigset_t watched = WatchedSignals();
  // Where there is no descriptor to be had, events are not waited for, only signals.
  const int signals = event_descriptor < 0 ? -1 : signalfd(-1, &watched, SFD_NONBLOCK | SFD_CLOEXEC);
  const int longest = signals < 0 ? kPollMilliseconds : kTurnMilliseconds;
  int turn = kFirstTurnMilliseconds;
  for (;;) {
    if (signals >= 0) {
      pollfd polled[2] = {{signals, POLLIN, 0}, {event_descriptor, POLLIN, 0}};
      poll(polled, 2, turn);
    }
    timespec timeout = {0, signals >= 0 ? 0 : turn * 1'000'000L};
    siginfo_t info;
    while (sigtimedwait(&watched, &info, &timeout) > 0) {
      PassOn(info);
      timeout = {0, 0};
    }
    turn = std::min(2 * turn, longest);
    if (Reap(on_orphan)) break;
    on_event();
  }
  if (signals >= 0) close(signals);
}

int ChildProcess::ExitStatus() const {
  return WIFSIGNALED(wait_status_) ? 128 + WTERMSIG(wait_status_) : WEXITSTATUS(wait_status_);
}

}  // namespace cadastre
