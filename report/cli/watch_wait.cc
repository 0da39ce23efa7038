#include "report/cli/watch_wait.h"

#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "report/process_info.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

sigset_t WatchedSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, number);
  return set;
}

int OpenProcess(pid_t pid) {
#ifdef SYS_pidfd_open
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
#else
  return -1;
#endif
}

}  // namespace

WatchWait::WatchWait(pid_t pid) : pid_(pid), start_ticks_(pid != 0 ? StartTicksOf(pid) : 0) {
  sigset_t signals = WatchedSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signals_ = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
  if (pid != 0) process_ = OpenProcess(pid);
}

WatchWait::~WatchWait() {
  if (process_ >= 0) close(process_);
  if (signals_ >= 0) close(signals_);
}

bool WatchWait::For(double seconds) {
  pollfd polled[2] = {{signals_, POLLIN, 0}, {process_, POLLIN, 0}};
  poll(polled, 2, static_cast<int>(std::ceil(seconds * 1000)));
  signalfd_siginfo info;
  while (signals_ >= 0 && read(signals_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)))
    stopped_ |= info.ssi_signo != SIGCHLD;
  if (process_ >= 0) {
    ended_ |= polled[1].revents != 0;
  } else if (pid_ != 0) {
    ended_ |= StartTicksOf(pid_) != start_ticks_;
  }
  return stopped_ || ended_;
}

void EndCommands::Start(const std::string& path) {
  if (command_.empty()) return;
  std::vector<char*> arguments;
  for (const std::string& word : command_) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(const_cast<char*>(path.c_str()));
  arguments.push_back(nullptr);
  // It inherits neither our blocked signals nor the ignored ones.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int number : {SIGPIPE, SIGXFSZ}) sigaddset(&defaults, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    failures_++;
    fprintf(stderr, "cadastre: cannot run %s: %s\n", SafeText(command_[0]).c_str(), strerror(error));
    return;
  }
  running_.push_back(pid);
}

void EndCommands::Reap(bool wait) {
  std::erase_if(running_, [&](pid_t pid) {
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, wait ? 0 : WNOHANG)) < 0 && errno == EINTR) {
    }
    if (got == 0) return false;
    if (got == pid && status != 0) {
      failures_++;
      const std::string how = WIFSIGNALED(status) ? absl::StrCat("signal ", WTERMSIG(status))
                                                  : absl::StrCat("exit status ", WEXITSTATUS(status));
      fprintf(stderr, "cadastre: %s ended with %s\n", SafeText(command_[0]).c_str(), how.c_str());
    }
    return true;
  });
}

}  // namespace cadastre
