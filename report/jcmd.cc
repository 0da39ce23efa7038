#include "report/jcmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/process_info.h"

namespace cadastre {
namespace {

constexpr int64_t kPatienceMs = 15000;   // a JVM that is busy collecting does not answer
constexpr int64_t kLookEachMs = 200;     // nor does one that somebody stops meanwhile
constexpr size_t kMostBytes = 32 << 20;  // a detail report is a few MiB

int64_t NowMs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

// The jcmd of the JDK that the process runs on, then one that is not tied to it.
std::string JcmdFor(pid_t pid) {
  constexpr absl::string_view kLibrary = "/lib/server/libjvm.so";
  for (const std::string& file : MappedFilesOf(pid)) {
    if (!absl::EndsWith(file, kLibrary)) continue;
    const std::string home = file.substr(0, file.size() - kLibrary.size());
    for (const std::string& root : {std::string(), absl::StrCat("/proc/", pid, "/root")}) {
      std::string path = absl::StrCat(root, home, "/bin/jcmd");
      if (access(path.c_str(), X_OK) == 0) return path;
    }
    return "jcmd";
  }
  return "";
}

// Ours without what would record jcmd too.
std::vector<char*> Environment() {
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; entry++) {
    if (!absl::StartsWith(*entry, "LD_PRELOAD=") && !absl::StartsWith(*entry, "JAVA_TOOL_OPTIONS=") &&
        !absl::StartsWith(*entry, "JDK_JAVA_OPTIONS="))
      kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

// By a signal or a debugger.
bool IsStopped(pid_t pid) {
  const std::string status = ReadWholeFile(absl::StrCat("/proc/", pid, "/status"));
  const absl::string_view state = StatusField(status, "State");
  return absl::StartsWith(state, "T") || absl::StartsWith(state, "t");
}
absl::Status StoppedError(pid_t pid) {
  return absl::UnavailableError(absl::StrCat("process ", pid, " is stopped and answers nobody (kill -CONT ", pid, ")"));
}

// jcmd says whom it asks, "4242:", and then what it was told.
bool HasBegun(const std::string& text) {
  const size_t line = text.find('\n');
  return line != std::string::npos && line + 1 < text.size();
}

// Reads until the end. False: the time or the room was up, or the JVM that is asked has been stopped.
bool ReadAll(int descriptor, pid_t asked, const std::function<void()>& at_answer, std::string* text) {
  int64_t deadline = NowMs() + kPatienceMs;
  bool has_begun = false;
  char buffer[65536];
  while (text->size() < kMostBytes) {
    pollfd wait = {descriptor, POLLIN, 0};
    const int64_t left = deadline - NowMs();
    if (left <= 0) return false;
    if (poll(&wait, 1, static_cast<int>(std::min(left, kLookEachMs))) == 0) {
      if (IsStopped(asked)) return false;
      continue;
    }
    const ssize_t got = read(descriptor, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text->append(buffer, static_cast<size_t>(got));
    if (has_begun || !HasBegun(*text)) continue;
    has_begun = true;
    const int64_t begun = NowMs();
    if (at_answer) at_answer();
    deadline += NowMs() - begun;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> AskJvm(pid_t pid, const std::vector<std::string>& words,
                                   const std::function<void()>& at_answer) {
  std::string program = JcmdFor(pid), number = absl::StrCat(pid);
  if (program.empty()) return absl::NotFoundError(absl::StrCat("process ", pid, " is no JVM"));
  std::vector<char*> arguments = {program.data(), number.data()};
  std::vector<std::string> copies = words;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (IsStopped(pid)) return StoppedError(pid);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError(absl::StrCat("cannot make a pipe: ", strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), Environment().data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) {
    close(ends[0]);
    return absl::NotFoundError(absl::StrCat("cannot run ", program, ": ", strerror(error)));
  }
  std::string text;
  const bool whole = ReadAll(ends[0], pid, at_answer, &text);
  close(ends[0]);
  if (!whole) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole && IsStopped(pid)) return StoppedError(pid);
  if (!whole) return absl::DeadlineExceededError(absl::StrCat("process ", pid, " does not answer jcmd"));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return absl::UnavailableError(absl::StrCat("jcmd could not ask process ", pid));
  return text;
}

std::string NmtLevelOf(pid_t pid) {
  for (const char* file : {"cmdline", "environ"}) {
    const std::string words = ReadWholeFile(absl::StrCat("/proc/", pid, "/", file));
    constexpr absl::string_view kFlag = "-XX:NativeMemoryTracking=";
    const size_t at = words.rfind(kFlag.data(), std::string::npos, kFlag.size());  // the last one counts
    if (at == std::string::npos) continue;
    const absl::string_view level = absl::string_view(words).substr(at + kFlag.size());
    for (const char* known : {"summary", "detail"}) {
      if (absl::StartsWith(level, known)) return known;
    }
    return "";
  }
  return "";
}

}  // namespace cadastre
