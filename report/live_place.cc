#include "report/live_place.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "interposer/options.h"
#include "report/output_file.h"
#include "report/process_info.h"

namespace cadastre {
namespace {

constexpr absl::string_view kEnding = ".cad";

// What the target may make of an `out`, as a pattern for glob(3).
std::string GlobOf(absl::string_view out, pid_t pid) {
  std::string glob;
  for (size_t i = 0; i < out.size(); i++) {
    if (out[i] != '%' || i + 1 == out.size()) {
      if (strchr("*?[\\", out[i]) != nullptr) glob += '\\';
      glob += out[i];
      continue;
    }
    const char letter = out[++i];
    if (letter == '%') {
      glob += '%';
    } else if (letter == 'p' && pid != 0) {
      absl::StrAppend(&glob, pid);
    } else {
      glob += '*';
    }
  }
  return glob;
}

std::vector<std::string> PathsLike(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), GLOB_PERIOD, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// Would the target refuse it?
absl::Status CheckPattern(const std::string& out) {
  utsname names{};
  uname(&names);
  char expanded[PATH_MAX];
  const char* first = nullptr;
  const OutputNames longest = {"", names.nodename, static_cast<uint64_t>(INT_MAX), static_cast<uint64_t>(INT_MAX)};
  if (!ExpandOutput(out.c_str(), longest, expanded, sizeof(expanded), &first))
    return absl::InvalidArgumentError(
        absl::StrCat("cannot record to ", out, ": too long, or a % before another letter than e, h, p and t"));
  if (out.size() >= kOptionTextBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot record to ", out, ": longer than ", kOptionTextBytes - 1, " bytes"));
  if (out.find(',') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("cannot record to ", out, ": a comma cannot stand in an option"));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LivePlace> LivePlace::Find(const std::string& out) {
  LivePlace place;
  std::string rest;
  place.directory_ = LiveDirectoryOf(out, &rest);
  place.is_pattern_ = !rest.empty();
  if (!IsDirectory(place.directory_))
    return absl::NotFoundError(absl::StrCat("cannot record to ", place.directory_, ": not a directory"));
  if (access(place.directory_.c_str(), W_OK | X_OK) != 0)
    return ErrnoStatus(errno, "cannot record to", place.directory_);
  // Made and dropped: /proc is a directory that says it can be written to.
  absl::StatusOr<OutputFile> probe = OutputFile::Create(absl::StrCat(place.directory_, "/cadastre"));
  if (!probe.ok())
    return absl::FailedPreconditionError(
        absl::StrCat("cannot record to ", place.directory_, ": no file can be made there"));
  char* absolute = realpath(place.directory_.c_str(), nullptr);
  if (absolute != nullptr) place.directory_ = absolute;
  free(absolute);
  place.out_ =
      rest.empty() ? place.directory_ : absl::StrCat(place.directory_ == "/" ? "" : place.directory_, "/", rest);
  if (absl::Status status = CheckPattern(place.out_); !status.ok()) return status;
  return place;
}

std::vector<std::string> LivePlace::FilesOf(pid_t pid) const {
  std::string glob = GlobOf(out_, pid);
  if (!absl::EndsWith(out_, kEnding)) {
    const std::string number = pid != 0 ? absl::StrCat(pid) : "*";
    return PathsLike(absl::StrCat(glob, "/cadastre-*-", number, "-*", kEnding));
  }
  // Where a name is taken a number follows it.
  glob.resize(glob.size() - kEnding.size());
  std::vector<std::string> paths = PathsLike(absl::StrCat(glob, kEnding));
  for (const std::string& path : PathsLike(absl::StrCat(glob, "-*", kEnding))) paths.push_back(path);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

std::vector<std::string> LivePlace::DirectoriesOf(pid_t pid) const {
  std::vector<std::string> directories = {directory_};
  std::string whole = out_;
  if (absl::EndsWith(whole, kEnding)) whole.resize(whole.rfind('/'));
  for (size_t at = directory_ == "/" ? 0 : directory_.size(); at < whole.size();) {
    at = std::min(whole.find('/', at + 1), whole.size());
    for (const std::string& path : PathsLike(GlobOf(whole.substr(0, at), pid))) {
      if (IsDirectory(path)) directories.push_back(path);
    }
  }
  return directories;
}

std::string LiveDirectoryOf(const std::string& out, std::string* rest) {
  const size_t pattern = out.find('%');
  rest->clear();
  if (pattern == std::string::npos && !absl::EndsWith(out, kEnding)) return out;
  const size_t slash = out.rfind('/', pattern);
  *rest = slash == std::string::npos ? out : out.substr(slash + 1);
  return slash == std::string::npos ? "." : slash == 0 ? "/" : out.substr(0, slash);
}

std::string DefaultLiveDirectory() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  return runtime != nullptr && runtime[0] == '/' ? runtime : "/dev/shm";
}

std::string ReasonPathOf(const std::string& directory, pid_t pid) {
  return absl::StrCat(directory, "/cadastre-", pid, ".why");
}

}  // namespace cadastre
