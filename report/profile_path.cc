#include "report/profile_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/estimate.h"
#include "report/live_file.h"
#include "report/process_info.h"
#include "symbolizer/profile.h"

namespace cadastre {
namespace {

constexpr double kTakenSlackSeconds = 2;  // a snapshot takes a moment, and nobody types fractions of a second

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

std::string ParentOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// A path that exists, or the live file of a PID.
absl::StatusOr<ProfilePath> FindBase(const std::string& argument) {
  ProfilePath found;
  // A run that goes on may have put snapshots beside a final profile that is not there yet.
  if (Exists(argument) || (argument.find('/') != std::string::npos && !SnapshotsOf(argument).empty())) {
    found.path = found.base = argument;
    return found;
  }
  int pid = 0;
  bool number = !argument.empty() && argument.find_first_not_of("0123456789") == std::string::npos;
  if (!number || !absl::SimpleAtoi(argument, &pid) || pid <= 0) {
    return absl::NotFoundError(absl::StrCat(argument, ": ", strerror(ENOENT)));
  }
  if (!ProcessExists(pid)) return absl::NotFoundError(absl::StrCat("no process ", pid));
  for (const MappedProfile& profile : MappedProfilesOf(pid)) {
    if (profile.open_path.empty()) {
      return absl::PermissionDeniedError(
          absl::StrCat("process ", pid, " records to ", profile.path, ", which cannot be opened from here"));
    }
    found.path = found.base = profile.open_path;
    found.pid = pid;
    return found;
  }
  if (ReadWholeFile(absl::StrCat("/proc/", TaskWithMemory(pid), "/maps"), 1).empty()) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot read the mappings of process ", pid, ": not ours to look at, or a kernel thread"));
  }
  if (MapsFileNamed(pid, "libcadastre"))
    return absl::NotFoundError(absl::StrCat("process ", pid, " ", WhyNoProfile(pid)));
  return absl::NotFoundError(
      absl::StrCat("process ", pid,
                   " was not started with Cadastre; memory allocated earlier has no owner, so there is no attach: "
                   "start it with `cadastre run`, with start=paused to record later"));
}

std::string LabelsOf(const std::vector<std::string>& snapshots) {
  return absl::StrJoin(snapshots, ", ", [](std::string* out, const std::string& path) {
    out->append(path.substr(path.rfind('@') + 1));
  });
}

// -1: cannot be read.
double UptimeOf(const std::string& path) {
  absl::StatusOr<Profile> profile = ReadProfile(path);
  return profile.ok() ? static_cast<double>(profile->duration_ns) / 1e9 : -1;
}

bool ReadIdentityOf(const std::string& path, ProfileIdentity* identity) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  bool read = descriptor >= 0 && ReadIdentity(descriptor, identity);
  if (descriptor >= 0) close(descriptor);
  return read;
}

// A profile that was written over another (`run -o`) stands beside the snapshots of that one.
bool IsOfAnotherProcess(const std::string& snapshot, const std::string& base) {
  ProfileIdentity a, b;
  if (!ReadIdentityOf(snapshot, &a) || !ReadIdentityOf(base, &b)) return false;
  return a.pid != b.pid || a.pid_namespace != b.pid_namespace || a.process_start_ticks != b.process_start_ticks;
}

std::string NoteOn(const std::string& snapshot, const std::string& base) {
  if (!IsOfAnotherProcess(snapshot, base)) return "";
  return absl::StrCat(snapshot.substr(snapshot.rfind('@')), " is a snapshot of another process than ", base);
}

}  // namespace

std::optional<double> ParseDurationSeconds(const std::string& text) {
  double total = 0;
  size_t at = 0;
  if (text.empty()) return std::nullopt;
  while (at < text.size()) {
    size_t end = text.find_first_not_of("0123456789.", at);
    double number = 0;
    if (end == std::string::npos || end == at || !absl::SimpleAtod(text.substr(at, end - at), &number))
      return std::nullopt;
    size_t unit_end = text.find_first_of("0123456789.", end);
    if (unit_end == std::string::npos) unit_end = text.size();
    std::string unit = text.substr(end, unit_end - end);
    double seconds = unit == "ms"                   ? 0.001
                     : unit == "s"                  ? 1
                     : unit == "m" || unit == "min" ? 60
                     : unit == "h"                  ? 3600
                     : unit == "d"                  ? 86400
                                                    : 0;
    if (seconds == 0) return std::nullopt;
    total += number * seconds;
    at = unit_end;
  }
  return total;
}

std::vector<std::string> SnapshotsOf(const std::string& profile_path) {
  std::vector<std::pair<int64_t, std::string>> found;
  std::string directory = ParentOf(profile_path);
  std::string prefix = NameOf(profile_path) + "@";
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return {};
  while (dirent* entry = readdir(listing)) {
    if (!absl::StartsWith(entry->d_name, prefix)) continue;
    std::string path = profile_path.find('/') == std::string::npos
                           ? entry->d_name
                           : absl::StrCat(directory == "/" ? "" : directory, "/", entry->d_name);
    struct stat status;
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    found.emplace_back(status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec, path);
  }
  closedir(listing);
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [time, path] : found) paths.push_back(path);
  return paths;
}

absl::StatusOr<ProfilePath> FindProfile(const std::string& argument) {
  size_t at = argument.rfind('@');
  // A file may have "@" in its name: snapshots do.
  if (Exists(argument) && at != std::string::npos && Exists(argument.substr(0, at))) {
    ProfilePath snapshot;
    snapshot.path = argument;
    snapshot.base = argument.substr(0, at);
    snapshot.note = NoteOn(snapshot.path, snapshot.base);
    return snapshot;
  }
  if (Exists(argument) || at == std::string::npos || at == 0) return FindBase(argument);
  std::string label = argument.substr(at + 1);
  absl::StatusOr<ProfilePath> base = FindBase(argument.substr(0, at));
  if (!base.ok()) return base.status();
  ProfilePath found = *base;
  found.path = absl::StrCat(found.base, "@", label);
  if (Exists(found.path)) {
    found.note = NoteOn(found.path, found.base);
    return found;
  }
  std::vector<std::string> snapshots = SnapshotsOf(found.base);
  std::erase_if(snapshots, [&](const std::string& path) { return IsOfAnotherProcess(path, found.base); });
  if (label == "peak") {
    found.path = found.base;
    found.at_peak = true;
    return found;
  }
  if (label == "last" && !snapshots.empty()) {
    // The peak is taken by itself, at any moment: it is the last one only if nobody has taken another.
    auto last = std::find_if(snapshots.rbegin(), snapshots.rend(),
                             [](const std::string& path) { return !absl::EndsWith(path, "@peak"); });
    found.path = last != snapshots.rend() ? *last : snapshots.back();
    return found;
  }
  std::optional<double> uptime = ParseDurationSeconds(label);
  if (uptime.has_value() && !snapshots.empty()) {
    // How long a lost process was up is not known: at least until its last sample and its last snapshot.
    double up_s = UptimeOf(found.base), taken_s = -1;
    for (const std::string& path : snapshots) {
      double snapshot_s = UptimeOf(path);
      up_s = std::max(up_s, snapshot_s);
      if (snapshot_s < 0 || (taken_s >= 0 && std::fabs(snapshot_s - *uptime) >= std::fabs(taken_s - *uptime))) continue;
      taken_s = snapshot_s;
      found.path = path;
    }
    if (up_s >= 0 && *uptime > up_s + kTakenSlackSeconds) {
      return absl::NotFoundError(absl::StrCat(found.base, "@", label, ": it goes to an uptime of ",
                                              FormatDuration(up_s), "; its snapshots are ", LabelsOf(snapshots)));
    }
    if (std::fabs(taken_s - *uptime) > std::max(kTakenSlackSeconds, *uptime / 20)) {
      found.note = absl::StrCat("no snapshot was taken at an uptime of ", label, ": the nearest is ",
                                found.path.substr(found.path.rfind('@')), " at ", FormatDuration(taken_s));
    }
    if (taken_s >= 0) return found;
  }
  return absl::NotFoundError(
      absl::StrCat(found.base, " has no snapshot \"", label, "\"; ",
                   snapshots.empty() ? "it has none at all" : absl::StrCat("it has ", LabelsOf(snapshots))));
}

}  // namespace cadastre
