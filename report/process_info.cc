#include "report/process_info.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace cadastre {
namespace {

struct MapsLine {
  std::string range;  // "7f..-7f.."
  std::string path;
  uint64_t inode = 0;
  bool deleted = false;
  bool is_beginning = false;  // of the file
};

std::vector<MapsLine> FileMappingsOf(pid_t pid) {
  std::vector<MapsLine> mappings;
  std::string maps = ReadWholeFile(absl::StrCat("/proc/", TaskWithMemory(pid), "/maps"));
  for (absl::string_view line : absl::StrSplit(maps, '\n', absl::SkipEmpty())) {
    // range perms offset device inode   path
    std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(' ', 5));
    if (fields.size() < 6) continue;
    absl::string_view path = absl::StripLeadingAsciiWhitespace(fields[5]);
    if (!absl::StartsWith(path, "/")) continue;
    MapsLine mapping;
    mapping.deleted = absl::ConsumeSuffix(&path, " (deleted)");
    mapping.range = std::string(fields[0]);
    mapping.is_beginning = fields[2].find_first_not_of('0') == absl::string_view::npos;
    mapping.path = std::string(path);
    (void)absl::SimpleAtoi(fields[4], &mapping.inode);
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

bool IsFile(const std::string& path, uint64_t inode) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode;
}

}  // namespace

bool IsDirectory(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string ReadWholeFile(const std::string& path, size_t limit) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return "";
  std::string text;
  char buffer[16384];
  ssize_t got;
  while (text.size() < limit && ((got = read(descriptor, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR))) {
    if (got > 0) text.append(buffer, got);
  }
  close(descriptor);
  return text;
}

pid_t TaskWithMemory(pid_t pid) {
  auto has_memory = [](pid_t task) { return !ReadWholeFile(absl::StrCat("/proc/", task, "/maps"), 1).empty(); };
  if (has_memory(pid)) return pid;
  pid_t found = pid;
  DIR* tasks = opendir(absl::StrCat("/proc/", pid, "/task").c_str());
  while (dirent* entry = tasks == nullptr || found != pid ? nullptr : readdir(tasks)) {
    int task = 0;
    if (absl::SimpleAtoi(entry->d_name, &task) && has_memory(task)) found = task;
  }
  if (tasks != nullptr) closedir(tasks);
  return found;
}

std::vector<MappedProfile> MappedProfilesOf(pid_t pid) {
  std::vector<MappedProfile> profiles;
  const pid_t task = TaskWithMemory(pid);
  for (const MapsLine& mapping : FileMappingsOf(pid)) {
    if (!absl::EndsWith(mapping.path, ".cad")) continue;
    bool known =
        std::any_of(profiles.begin(), profiles.end(), [&](const MappedProfile& p) { return p.path == mapping.path; });
    if (known) continue;
    MappedProfile profile;
    profile.path = mapping.path;
    // The same name here may be another file where the process has another root: the inode decides. map_files also
    // reaches a deleted file, but needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
    std::string in_root = absl::StrCat("/proc/", task, "/root", mapping.path);
    std::string in_map_files = absl::StrCat("/proc/", task, "/map_files/", mapping.range);
    for (const std::string& candidate : {mapping.path, in_root, in_map_files}) {
      if (!IsFile(candidate, mapping.inode)) continue;
      profile.open_path = candidate;
      break;
    }
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

std::vector<std::string> MappedFilesOf(pid_t pid) {
  std::set<std::string> paths;
  for (const MapsLine& mapping : FileMappingsOf(pid)) paths.insert(mapping.path);
  return {paths.begin(), paths.end()};
}

int ImagesOf(pid_t pid, const char* name) {
  int count = 0;
  for (const MapsLine& mapping : FileMappingsOf(pid)) {
    count += mapping.is_beginning && absl::EndsWith(mapping.path, absl::StrCat("/", name));
  }
  return count;
}

bool MapsFileNamed(pid_t pid, const char* part) {
  for (const MapsLine& mapping : FileMappingsOf(pid)) {
    if (absl::StrContains(mapping.path, part)) return true;
  }
  return false;
}

bool ProcessExists(pid_t pid) { return pid > 0 && (kill(pid, 0) == 0 || errno == EPERM); }

uint64_t ResidentBytesOf(pid_t pid) {
  std::string statm = ReadWholeFile(absl::StrCat("/proc/", pid, "/statm"));
  std::vector<absl::string_view> fields = absl::StrSplit(statm, ' ');
  uint64_t pages = 0;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &pages)) return 0;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

namespace {

// Field `number` of /proc/PID/stat as proc(5) counts them, from 3 on; 0 = not known.
uint64_t StatField(pid_t pid, size_t number) {
  std::string stat = ReadWholeFile(absl::StrCat("/proc/", pid, "/stat"));
  // The program's name (field 2) may hold spaces and parentheses: fields are counted from its last ')'.
  size_t after = stat.rfind(')');
  if (after == std::string::npos) return 0;
  std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(stat).substr(after + 1), ' ', absl::SkipEmpty());
  uint64_t value = 0;
  return fields.size() > number - 3 && absl::SimpleAtoi(fields[number - 3], &value) ? value : 0;
}

}  // namespace

uint64_t PeakResidentBytesOf(pid_t pid) {
  const std::string status = ReadWholeFile(absl::StrCat("/proc/", pid, "/status"));
  absl::string_view words = StatusField(status, "VmHWM");
  uint64_t kib = 0;
  return absl::SimpleAtoi(words.substr(0, words.find(' ')), &kib) ? kib * 1024 : 0;
}

uint64_t StartTicksOf(pid_t pid) { return StatField(pid, 22); }

bool IsEnding(pid_t pid) {
  constexpr uint64_t kExiting = 0x4;  // PF_EXITING of Linux's sched.h
  if ((StatField(pid, 9) & kExiting) != 0) return true;
  const std::string status = ReadWholeFile(absl::StrCat("/proc/", pid, "/status"));
  for (const char* pending : {"SigPnd", "ShdPnd"}) {
    if (StatusField(status, pending).find_first_not_of('0') != absl::string_view::npos) return true;
  }
  return false;
}

std::string WhyNoProfile(pid_t pid) {
  constexpr uint64_t kForkedWithoutExec = 0x40;  // PF_FORKNOEXEC of Linux's sched.h
  return (StatField(pid, 9) & kForkedWithoutExec) != 0
             ? "was forked and goes on with its parent's program: such a process is not recorded"
             : "has Cadastre preloaded, but no sample was due yet: there is no profile";
}

uint64_t PidNamespaceOf(pid_t pid) {
  struct stat status;
  return stat(absl::StrCat("/proc/", pid, "/ns/pid").c_str(), &status) == 0 ? status.st_ino : 0;
}

absl::string_view StatusField(absl::string_view status, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(status, '\n')) {
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, ":")) return absl::StripAsciiWhitespace(line);
  }
  return "";
}

uint32_t InnermostId(absl::string_view status) {
  std::vector<absl::string_view> ids =
      absl::StrSplit(StatusField(status, "NSpid"), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  uint32_t innermost = 0;
  return !ids.empty() && absl::SimpleAtoi(ids.back(), &innermost) ? innermost : 0;
}

namespace {

pid_t FindInNamespaceBelow(uint32_t pid, uint64_t pid_namespace, uint64_t start_ticks) {
  DIR* listing = opendir("/proc");
  if (listing == nullptr) return 0;
  pid_t found = 0;
  while (dirent* entry = found != 0 ? nullptr : readdir(listing)) {
    int candidate = 0;
    if (!absl::SimpleAtoi(entry->d_name, &candidate)) continue;
    if (StartTicksOf(candidate) == start_ticks && PidNamespaceOf(candidate) == pid_namespace &&
        InnermostId(ReadWholeFile(absl::StrCat("/proc/", candidate, "/status"))) == pid)
      found = candidate;
  }
  closedir(listing);
  return found;
}

}  // namespace

std::string ProgramOf(pid_t pid) {
  char path[PATH_MAX];
  const ssize_t length = readlink(absl::StrCat("/proc/", pid, "/exe").c_str(), path, sizeof(path));
  absl::string_view exe(path, length > 0 ? static_cast<size_t>(length) : 0);
  absl::ConsumeSuffix(&exe, " (deleted)");
  if (!exe.empty()) return std::string(exe.substr(exe.rfind('/') + 1));
  return std::string(absl::StripAsciiWhitespace(ReadWholeFile(absl::StrCat("/proc/", pid, "/comm"))));
}

pid_t RunningProcessOf(uint32_t pid, uint64_t pid_namespace, uint64_t start_ticks) {
  if (pid == 0) return 0;
  if (pid_namespace != 0 && pid_namespace != PidNamespaceOf(getpid()))
    return start_ticks != 0 ? FindInNamespaceBelow(pid, pid_namespace, start_ticks) : 0;
  uint64_t ticks = StartTicksOf(static_cast<pid_t>(pid));
  if (ticks == 0 || (start_ticks != 0 && ticks != start_ticks)) return 0;
  return static_cast<pid_t>(pid);
}

}  // namespace cadastre
