#include "report/cli/run_watch.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/format.h"
#include "report/function_name.h"
#include "report/live_file.h"
#include "report/preload.h"
#include "report/process_info.h"
#include "report/saved_profiles.h"
#include "symbolizer/profile.h"

namespace cadastre {
namespace {

// The directory is read, and each new profile's header: often enough that short-lived children do not fill it.
constexpr double kChildrenSeconds = 1;
// That long is waited for children when the program has ended: for one that is about to end as well, and for others.
constexpr double kEndingSeconds = 5, kLivingSeconds = 0.1;
constexpr useconds_t kLookPauseUs = 10000;

double NowSeconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

bool IsOurs(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid();
}

bool IsShort(const std::string& directory) {
  struct statvfs space;
  return statvfs(directory.c_str(), &space) == 0 && space.f_blocks != 0 && space.f_bavail < space.f_blocks / 4;
}

// What would starve the next profile goes to another file system, where there is one that we may write to.
std::string MoveIfShort(const std::string& path) {
  struct stat here, there;
  if (!IsShort(DirectoryOf(path)) || stat(path.c_str(), &here) != 0) return path;
  for (const char* directory : {".", "/tmp", "/var/tmp"}) {
    char resolved[PATH_MAX];
    if (realpath(directory, resolved) == nullptr || stat(resolved, &there) != 0 || there.st_dev == here.st_dev ||
        access(resolved, W_OK) != 0 || IsShort(resolved))
      continue;
    absl::StatusOr<std::string> moved = SaveDeadProfile(path, resolved, {});
    if (moved.ok()) return *moved;
  }
  return path;
}

}  // namespace

// Those of children may be in a directory of their own each.
std::vector<std::string> RunWatch::LiveFiles() const {
  std::vector<std::string> paths;
  for (const std::string& directory : options_.place.DirectoriesOf(0)) {
    absl::StatusOr<std::vector<std::string>> found = ProfilesIn(directory);
    if (found.ok()) paths.insert(paths.end(), found->begin(), found->end());
  }
  return paths;
}

void RunWatch::AdoptEarlier() {
  utsname names{};
  uname(&names);
  for (const std::string& path : LiveFiles()) {
    ProfileIdentity identity;
    if (!IsOurs(path) || !IdentityOf(path, &identity)) continue;
    // Of another host the process table says nothing, and its directory may be a network's.
    if (!identity.awaited || identity.saved || identity.is_copy || identity.host != names.nodename) continue;
    if (LivenessOf(path, identity) != Liveness::kDead) continue;
    absl::StatusOr<std::string> saved =
        SaveDeadProfile(path, options_.output.empty() ? "" : DirectoryOf(options_.output), {});
    if (saved.ok() && options_.output.empty()) saved = MoveIfShort(*saved);
    if (!saved.ok()) {
      say_(std::string(saved.status().message()));
      continue;
    }
    absl::StatusOr<Profile> profile = ReadProfile(*saved);
    say_(absl::StrCat("profile of an earlier run at ", *saved,
                      profile.ok() ? absl::StrCat(" (", EndText(*profile), ")") : ""));
  }
}

void RunWatch::Begin(pid_t child) {
  child_ = child;
  tree_ = std::make_unique<ProcessTree>(child);
  tree_->Look();
}

void RunWatch::Turn(const LiveFileWatch& live) {
  if (tree_ != nullptr) tree_->Look();
  if (const uint64_t peak = PeakResidentBytesOf(child_); peak > 0) own_peak_bytes_ = peak;
  if (live.found() && live.path() != watched_path_) {
    watched_path_ = live.path();
    WatchedProcess process{options_.settings, child_, watched_path_,
                           options_.output.empty() ? watched_path_ : options_.output};
    watch_ = std::make_unique<ProcessWatch>(process, say_);
  }
  if (watch_ != nullptr) {
    watch_->Look();
    format::MemoryNote note = watch_->note();
    if (note.realtime_ns != 0) WriteMemoryNote(live.file(), note);
  }
  if (NowSeconds() - children_seen_s_ >= kChildrenSeconds) SaveChildren();
}

format::MemoryNote RunWatch::End() {
  // Whoever was told to end by the program, just before its own end, may still be at it.
  const double ended_s = NowSeconds();
  for (Children left = SaveChildren(); left != Children::kNone; left = SaveChildren()) {
    if (NowSeconds() - ended_s > (left == Children::kEnding ? kEndingSeconds : kLivingSeconds)) break;
    usleep(kLookPauseUs);
  }
  return watch_ != nullptr ? watch_->note() : format::MemoryNote{};
}

// Those that inherited our options: "...,for=PID" names this run's child. What is left of them.
RunWatch::Children RunWatch::SaveChildren() {
  Children left = Children::kNone;
  children_seen_s_ = NowSeconds();
  const std::string ours = absl::StrCat(child_);
  const uint64_t pid_namespace = PidNamespaceOf(getpid());
  std::set<std::string> saved_programs;
  for (const std::string& path : LiveFiles()) {
    ProfileIdentity identity;
    if (!IsOurs(path) || !IdentityOf(path, &identity) || identity.is_copy) continue;
    if (OptionValue(identity.options, "for") != ours || identity.pid_namespace != pid_namespace) continue;
    recorded_.insert({static_cast<pid_t>(identity.pid), std::string(FileName(identity.exe))});
    // The program's own, of each image, are for whoever waits for it to end.
    if (identity.saved || identity.pid == static_cast<uint32_t>(child_)) continue;
    if (LivenessOf(path, identity) != Liveness::kDead) {
      if (IsEnding(static_cast<pid_t>(identity.pid))) {
        left = Children::kEnding;
      } else if (left == Children::kNone) {
        left = Children::kLive;
      }
      continue;
    }
    if (SaveDeadProfile(path, "", {}).ok()) saved_programs.insert(identity.exe);
  }
  if (options_.keep == UINT32_MAX) return left;
  for (const std::string& directory : options_.place.DirectoriesOf(0)) {
    for (const std::string& program : saved_programs) RemoveSavedBeyond(directory, options_.keep, program);
  }
  return left;
}

uint64_t RunWatch::OwnPeakBytes(uint64_t with_children) const {
  const bool has_others =
      tree_ != nullptr && std::any_of(tree_->seen().begin(), tree_->seen().end(),
                                      [this](const SeenProgram& program) { return program.pid != child_; });
  return has_others && own_peak_bytes_ > 0 ? std::min(own_peak_bytes_, with_children) : with_children;
}

std::string RunWatch::NotRecorded(bool without_root) const {
  if (tree_ == nullptr) return "";
  std::set<SeenProgram> seen = tree_->seen();
  if (without_root) std::erase_if(seen, [this](const SeenProgram& program) { return program.pid == child_; });
  return NotRecordedText(seen, recorded_);
}

}  // namespace cadastre
