#include "symbolizer/end_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "symbolizer/file_use.h"

namespace cadastre {
namespace {

// State letter and start time of a process or thread; false if there is none. The name in field 2 may hold blanks and
// parentheses.
bool ReadStat(const std::string& directory, char* state, uint64_t* start_ticks) {
  std::ifstream file(directory + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  size_t close = line.rfind(')');
  if (close == std::string::npos || close + 2 >= line.size()) return false;
  std::vector<std::string> fields = absl::StrSplit(line.substr(close + 2), ' ');
  if (fields.size() < 20 || fields[0].empty()) return false;  // fields[0] is field 3, so start time (22) is fields[19]
  *state = fields[0][0];
  return absl::SimpleAtoi(fields[19], start_ticks);
}

bool IsDeadState(char state) { return state == 'Z' || state == 'X'; }

// The directory in /proc of a thread that runs; empty if there is none. A process whose main thread has ended looks
// like a zombie and shows no mappings, but its other threads do.
std::string RunningThread(uint32_t pid) {
  std::string process = absl::StrCat("/proc/", pid);
  char state;
  uint64_t start_ticks;
  if (ReadStat(process, &state, &start_ticks) && !IsDeadState(state)) return process;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(process + "/task", error)) {
    if (ReadStat(task.path(), &state, &start_ticks) && !IsDeadState(state)) return task.path();
  }
  return "";
}

enum class Mapped { kYes, kNo, kUnknown };

Mapped ProcessMapsFile(const std::string& process, const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return Mapped::kUnknown;
  char* resolved = realpath(path.c_str(), nullptr);
  std::string real = resolved == nullptr ? path : resolved;
  free(resolved);
  std::ifstream maps(process + "/maps");
  if (!maps) return Mapped::kUnknown;
  std::string line;
  bool any = false;
  while (std::getline(maps, line)) {
    any = true;
    unsigned major_number, minor_number;
    unsigned long inode;
    int name_at = 0;
    if (sscanf(line.c_str(), "%*s %*s %*s %x:%x %lu %n", &major_number, &minor_number, &inode, &name_at) != 3) continue;
    // The path is the second witness: overlay and btrfs show another device number in maps than stat does.
    if (inode == status.st_ino &&
        (makedev(major_number, minor_number) == status.st_dev || line.substr(name_at) == real)) {
      return Mapped::kYes;
    }
  }
  return any ? Mapped::kNo : Mapped::kUnknown;  // not readable for us: maps of others' processes read as empty or fail
}

bool SamePidNamespace(const format::Header& header) {
  struct stat own;
  if (header.pid_namespace == 0) return true;  // not known: start time alone decides
  return stat("/proc/self/ns/pid", &own) == 0 && own.st_ino == header.pid_namespace;
}

// Does `path` hold a later profile of the same process? Then that process has become another program meanwhile.
bool IsLaterImage(const std::string& path, const format::Header& header) {
  std::ifstream file(path, std::ios::binary);
  format::Header other;
  return file.read(reinterpret_cast<char*>(&other), sizeof(other)) &&
         memcmp(other.magic, format::kMagic, sizeof(other.magic)) == 0 && format::IsKnownVersion(other.version) &&
         !other.is_snapshot && other.pid == header.pid && other.pid_namespace == header.pid_namespace &&
         other.process_start_ticks == header.process_start_ticks &&
         other.start_monotonic_ns > header.start_monotonic_ns;
}

// Looked for among the profiles beside it whose name holds the pid: "cadastre-HOST-EXE-PID-SECONDS.cad".
bool HasLaterImage(const format::Header& header, const std::string& path) {
  if (header.pid == 0 || header.process_start_ticks == 0) return false;
  const std::string pid = absl::StrCat("-", header.pid, "-");
  size_t slash = path.rfind('/');
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(slash == std::string::npos ? "." : path.substr(0, slash + 1), error)) {
    std::string name = entry.path().filename();
    if (!absl::EndsWith(name, ".cad") || name.find(pid) == std::string::npos) continue;
    if (entry.is_regular_file(error) && IsLaterImage(entry.path(), header)) return true;
  }
  return false;
}

uint64_t NowNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

EndDecision DecideEnd(const format::Header& header, const std::string& path) {
  const format::Outcome& outcome = header.outcome;
  switch (outcome.end) {
    case format::kEndStatus:
      return {EndState::kExit, outcome.end_value, true};
    case format::kEndSignal:
      return {EndState::kSignal, outcome.end_value, true};
    case format::kEndExec:
      return {EndState::kExec};
    default:
      break;
  }
  if (header.is_snapshot) return {outcome.end == format::kEndExit ? EndState::kExit : EndState::kRunning};
  char state;
  uint64_t start_ticks;
  std::string thread;
  if (header.pid != 0 && header.process_start_ticks != 0 && SamePidNamespace(header) &&
      ReadStat(absl::StrCat("/proc/", header.pid), &state, &start_ticks) && start_ticks == header.process_start_ticks) {
    thread = RunningThread(header.pid);
  }
  if (!thread.empty()) {
    Mapped mapped = ProcessMapsFile(thread, path);
    // A process that ran its exit handlers and is on its way out has not become another program.
    if (mapped == Mapped::kNo && outcome.end != format::kEndExit) return {EndState::kExec};
    if (mapped != Mapped::kNo) return {EndState::kRunning};
  }
  if (outcome.end == format::kEndExit) return {EndState::kExit};
  // In another pid namespace the process table cannot be asked, nor about a process that could not look at itself there
  // (a root without /proc).
  const bool is_known_here = header.process_start_ticks != 0 && SamePidNamespace(header);
  if (!is_known_here && FileUseOf(path) == FileUse::kWritten) return {EndState::kRunning};
  return {HasLaterImage(header, path) ? EndState::kExec : EndState::kLost};
}

uint64_t DurationNs(const format::Header& header, EndState end) {
  uint64_t duration = 0;
  auto since_start = [&](uint64_t realtime) {
    return realtime > header.start_realtime_ns ? realtime - header.start_realtime_ns : 0;
  };
  if (header.is_snapshot && header.snapshot_end_realtime_ns != 0 && end == EndState::kRunning) {
    duration = since_start(header.snapshot_end_realtime_ns);
  } else if (end == EndState::kRunning) {
    uint64_t now = NowNs(CLOCK_MONOTONIC);
    duration = now > header.start_monotonic_ns ? now - header.start_monotonic_ns : 0;
  } else if (header.outcome.end_realtime_ns != 0) {
    duration = since_start(header.outcome.end_realtime_ns);
  }
  return std::max(duration, header.last_sample_ns);
}

}  // namespace cadastre
