#include "report/cli/watch_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "interposer/options.h"
#include "report/cli/watch_wait.h"
#include "report/function_name.h"
#include "report/live_file.h"
#include "report/output_file.h"
#include "report/process_info.h"
#include "report/process_watch.h"
#include "report/profile_copy.h"
#include "report/saved_profiles.h"
#include "report/text_table.h"
#include "symbolizer/file_use.h"

namespace cadastre {
namespace {

// A look costs some ten system calls. What fills its last tenth of a 4 GiB limit in less is caught by nobody.
constexpr double kLookSeconds = 0.5;
constexpr int kUnusable = 2;

void Say(const std::string& line) { fprintf(stderr, "cadastre: %s\n", SafeText(line).c_str()); }

int Refuse(const std::string& line) {
  Say(line);
  return kUnusable;
}

std::string Absolute(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

std::string DirectoryOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The directory for what is saved can be written to: heard now, not when a process has died.
absl::Status CheckOutput(const std::string& directory) {
  absl::StatusOr<OutputFile> probe = OutputFile::Create(absl::StrCat(directory, "/cadastre"));
  return probe.ok() ? absl::OkStatus() : probe.status();
}

class Watcher {
 public:
  explicit Watcher(const WatchOptions& options) : options_(options), commands_(options.on_end) {}

  void Tell(const std::string& saved) {
    printf("%s\n", saved.c_str());
    fflush(stdout);
    commands_.Start(saved);
  }
  void SayOnce(const std::string& line) {
    if (said_.insert(line).second) Say(line);
  }
  int Finish() {
    commands_.Reap(true);
    return commands_.all_succeeded() ? 0 : 1;
  }

 protected:
  std::unique_ptr<ProcessWatch> Open(pid_t pid, const std::string& live_path, const std::string& base) {
    WatchedProcess process{options_.settings, pid, live_path, base};
    auto watch = std::make_unique<ProcessWatch>(process, [this](const std::string& line) { SayOnce(line); });
    if (!watch->is_open()) return nullptr;
    Say(absl::StrCat("watching ", pid != 0 ? absl::StrCat("process ", pid, ", ") : "", live_path));
    if (options_.at_was_asked && !watch->has_limit())
      SayOnce(absl::StrCat(pid != 0 ? absl::StrCat("process ", pid) : live_path,
                           " has no memory limit that can be read", " here: --at does nothing without --limit"));
    return watch;
  }

  const WatchOptions& options_;
  EndCommands commands_;
  std::set<std::string> said_;
};

// ---- One process --------------------------------------------------------------------------------

std::string WhoseItIs(pid_t pid, uid_t owner) {
  return absl::StrCat("process ", pid, " (", ProgramOf(pid), ") belongs to uid ", owner, " and this is uid ", geteuid(),
                      ": neither its mappings nor its profile (mode 600) may be read; watch it as uid ", owner,
                      ", or as root with CAP_SYS_PTRACE");
}

class OneProcess : public Watcher {
 public:
  OneProcess(pid_t pid, const WatchOptions& options) : Watcher(options), pid_(pid) {}
  ~OneProcess() { CloseDirectory(); }

  int Run() {
    struct stat facts;
    const std::string process = absl::StrCat("/proc/", pid_);
    if (!ProcessExists(pid_) || stat(process.c_str(), &facts) != 0) return Refuse(absl::StrCat("no process ", pid_));
    WatchWait wait(pid_);
    if (ReadWholeFile(absl::StrCat("/proc/", TaskWithMemory(pid_), "/maps"), 1).empty()) {
      if (facts.st_uid != geteuid()) return Refuse(WhoseItIs(pid_, facts.st_uid));
      return Refuse(
          absl::StrCat("cannot read the mappings of process ", pid_, ": it has ended, or is a kernel thread"));
    }
    if (absl::Status status = Find(); !status.ok()) return Refuse(std::string(status.message()));
    if (watch_ == nullptr) {
      if (!MapsFileNamed(pid_, "libcadastre"))
        return Refuse(absl::StrCat("process ", pid_, " was not started with Cadastre: there is nothing to watch"));
      Say(absl::StrCat("process ", pid_, " ", WhyNoProfile(pid_)));
    }
    while (!wait.For(kLookSeconds)) {
      Look();
      commands_.Reap(false);
    }
    if (wait.process_has_ended()) End();
    return Finish();
  }

 private:
  // The profile that it maps now, and where its snapshots go.
  absl::Status Find() {
    for (const MappedProfile& profile : MappedProfilesOf(pid_)) {
      if (profile.open_path.empty())
        return absl::PermissionDeniedError(
            absl::StrCat("process ", pid_, " records to ", profile.path, ", which cannot be opened from here"));
      const bool here = profile.open_path == profile.path;
      directory_ = !options_.output.empty() ? Absolute(options_.output)
                   : here                   ? DirectoryOf(profile.path)
                                            : Absolute(".");
      if (absl::Status status = CheckOutput(directory_); !status.ok()) {
        return absl::PermissionDeniedError(absl::StrCat(status.message(),
                                                        here ? "" : " (the profile lies in another mount namespace)",
                                                        "; name a directory with -o"));
      }
      name_ = profile.path.substr(profile.path.rfind('/') + 1);
      // Its directory may go with its mount namespace, unless somebody has it open.
      CloseDirectory();
      live_directory_ = open(DirectoryOf(profile.open_path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
      watch_ = Open(pid_, profile.open_path, absl::StrCat(directory_, "/", name_));
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  void Look() {
    if (watch_ != nullptr && FileUseOf(watch_->live_path()) == FileUse::kIdle) End();  // exec: another program now
    if (watch_ == nullptr) {
      if (absl::Status status = Find(); !status.ok()) SayOnce(std::string(status.message()));
    }
    if (watch_ != nullptr) watch_->Look();
  }

  void End() {
    if (watch_ == nullptr) return;
    std::unique_ptr<ProcessWatch> watch = std::move(watch_);
    ProfileIdentity identity;
    const bool has_name = faccessat(live_directory_, name_.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    if (!has_name || !ReadIdentity(watch->file(), &identity))
      return Say(absl::StrCat("the profile of process ", pid_, " was taken away by somebody else"));
    const std::string here = absl::StrCat("/proc/self/fd/", live_directory_, "/", name_);
    if (identity.awaited && (identity.saved || FileUseOf(here) == FileUse::kWritten))
      return Say(absl::StrCat("`cadastre run` keeps the profile of process ", pid_));
    absl::StatusOr<std::string> saved = Save(*watch);
    if (!saved.ok()) return Say(std::string(saved.status().message()));
    Tell(*saved);
  }

  absl::StatusOr<std::string> Save(const ProcessWatch& watch) {
    const std::string original = absl::StrCat("/proc/self/fd/", live_directory_, "/", name_), to = watch.base();
    struct stat a, b;
    const bool stays =
        stat(original.c_str(), &a) == 0 && stat(to.c_str(), &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
    if (stays) return SaveDeadProfile(to, "", watch.note());
    CopyOptions copy;
    copy.is_snapshot = false;
    copy.saved = true;
    copy.note = watch.note();
    if (absl::Status status = CopyProfile(watch.file(), name_, to, copy); !status.ok()) return status;
    MoveSnapshots(original, to, [this](const std::string& line) { SayOnce(line); });
    if (unlinkat(live_directory_, name_.c_str(), 0) != 0)
      SayOnce(absl::StrCat("saved to ", to, ", but cannot remove the original: ", strerror(errno)));
    return to;
  }

  void CloseDirectory() {
    if (live_directory_ >= 0) close(live_directory_);
    live_directory_ = -1;
  }

  pid_t pid_;
  std::string directory_, name_;
  int live_directory_ = -1;
  std::unique_ptr<ProcessWatch> watch_;
};

// ---- A directory --------------------------------------------------------------------------------

class OneDirectory : public Watcher {
 public:
  OneDirectory(const std::string& directory, const WatchOptions& options)
      : Watcher(options), directory_(Absolute(directory)) {
    output_ = options.output.empty() ? directory_ : Absolute(options.output);
  }

  int Run() {
    if (absl::StatusOr<std::vector<std::string>> paths = ProfilesIn(directory_); !paths.ok())
      return Refuse(std::string(paths.status().message()));
    if (absl::Status status = CheckOutput(output_); !status.ok()) return Refuse(std::string(status.message()));
    WatchWait wait(0);
    Say(absl::StrCat("watching directory ", directory_));
    do {
      Look();
      commands_.Reap(false);
    } while (!wait.For(kLookSeconds));
    Look();
    return Finish();
  }

 private:
  void Look() {
    absl::StatusOr<std::vector<std::string>> paths = ProfilesIn(directory_);
    if (!paths.ok()) return SayOnce(std::string(paths.status().message()));
    std::erase_if(watched_,
                  [&](const auto& entry) { return !std::binary_search(paths->begin(), paths->end(), entry.first); });
    for (const std::string& path : *paths) LookAt(path);
  }

  void LookAt(const std::string& path) {
    auto found = watched_.find(path);
    if (found != watched_.end()) {
      ProfileIdentity identity;
      if (!ReadIdentity(found->second->file(), &identity)) return;
      if (LivenessOf(path, identity) != Liveness::kDead) return found->second->Look();
      const format::MemoryNote note = found->second->note();
      watched_.erase(found);
      if (!identity.saved) Save(path, note);
      return;
    }
    ProfileIdentity identity;
    if (!IdentityOf(path, &identity)) return SayIfUnreadable(path);
    if (identity.saved || identity.is_copy) return;
    if (!GlobMatches(options_.exe.c_str(), std::string(FileName(identity.exe)).c_str())) return;
    switch (LivenessOf(path, identity)) {
      case Liveness::kDead:
        return Save(path, {});
      case Liveness::kUnknown:
        return SayOnce(absl::StrCat("cannot tell whether somebody still writes to ", path, ": it is left alone"));
      case Liveness::kInUse:
        break;
    }
    const pid_t pid = RunningProcessOf(identity.pid, identity.pid_namespace, identity.process_start_ticks);
    const std::string base = absl::StrCat(output_, "/", FileName(path));
    if (std::unique_ptr<ProcessWatch> watch = Open(pid, path, base)) watched_[path] = std::move(watch);
  }

  void Save(const std::string& path, const format::MemoryNote& note) {
    absl::StatusOr<std::string> saved = SaveDeadProfile(path, output_, note);
    if (!saved.ok()) return SayOnce(std::string(saved.status().message()));
    Tell(*saved);
  }

  void SayIfUnreadable(const std::string& path) {
    struct stat status;
    if (access(path.c_str(), R_OK) == 0 || errno != EACCES || stat(path.c_str(), &status) != 0) return;
    SayOnce(absl::StrCat("cannot read ", path, ": it belongs to uid ", status.st_uid, " and this is uid ", geteuid(),
                         "; watch as uid ", status.st_uid, ", or start the program with mode=640 and a common group"));
  }

  std::string directory_, output_;
  std::map<std::string, std::unique_ptr<ProcessWatch>> watched_;
};

}  // namespace

int WatchProcess(pid_t pid, const WatchOptions& options) { return OneProcess(pid, options).Run(); }

int WatchDirectory(const std::string& directory, const WatchOptions& options) {
  return OneDirectory(directory, options).Run();
}

}  // namespace cadastre
