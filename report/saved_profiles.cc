#include "report/saved_profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/output_file.h"
#include "report/process_info.h"
#include "report/profile_copy.h"
#include "report/profile_path.h"
#include "symbolizer/file_use.h"
#include "symbolizer/packed_again.h"
#include "symbolizer/profile.h"

namespace cadastre {
namespace {

constexpr off_t kMostPeakBytes = 16 << 20;  // it is held in memory, and a larger one is mostly what is packed quickly

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string Joined(const std::string& directory, const std::string& name) {
  return absl::StrCat(directory, absl::EndsWith(directory, "/") ? "" : "/", name);
}

void RemoveProfile(const std::string& path) {
  for (const std::string& snapshot : SnapshotsOf(path)) unlink(snapshot.c_str());
  unlink(path.c_str());
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ProfilesIn(const std::string& directory, bool with_snapshots) {
  DIR* listing = opendir(directory.c_str());
  if (listing == nullptr) return ErrnoStatus(errno, "cannot list", directory);
  std::vector<std::string> paths;
  while (dirent* entry = readdir(listing)) {
    const std::string name = entry->d_name;
    if (name[0] == '.') continue;  // a file of ours under way, or hidden from us
    if (absl::EndsWith(name, ".cad") || (with_snapshots && absl::StrContains(name, ".cad@")))
      paths.push_back(Joined(directory, name));
  }
  closedir(listing);
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool IdentityOf(const std::string& path, ProfileIdentity* identity) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  const bool read = descriptor >= 0 && ReadIdentity(descriptor, identity);
  if (descriptor >= 0) close(descriptor);
  return read;
}

Liveness LivenessOf(const std::string& path, const ProfileIdentity& identity) {
  switch (FileUseOf(path)) {
    case FileUse::kWritten:
      return Liveness::kInUse;
    case FileUse::kIdle:
      return Liveness::kDead;
    case FileUse::kUnknown:
      break;
  }
  if (RunningProcessOf(identity.pid, identity.pid_namespace, identity.process_start_ticks) != 0)
    return Liveness::kInUse;
  const bool is_here = identity.pid_namespace != 0 && identity.pid_namespace == PidNamespaceOf(getpid());
  return is_here ? Liveness::kDead : Liveness::kUnknown;
}

void MoveSnapshots(const std::string& from, const std::string& to, const std::function<void(std::string)>& say) {
  for (const std::string& snapshot : SnapshotsOf(from)) {
    CopyOptions options;
    options.is_snapshot = false;  // it is one already
    options.overwrite = true;
    const std::string moved = absl::StrCat(to, snapshot.substr(from.size()));
    if (absl::Status status = CopyProfile(snapshot, moved, options); !status.ok()) {
      say(absl::StrCat(status.message(), "; the snapshot is still at ", snapshot));
      continue;
    }
    unlink(snapshot.c_str());
  }
}

void PackPeakOf(const std::string& path) {
  const std::string peak = absl::StrCat(path, "@peak");
  struct stat before {};
  if (lstat(peak.c_str(), &before) != 0 || !S_ISREG(before.st_mode) || before.st_size > kMostPeakBytes) return;
  absl::StatusOr<std::string> packed = PackedAgain(ReadWholeFile(peak, kMostPeakBytes));
  if (!packed.ok() || packed->size() >= static_cast<size_t>(before.st_size) ||
      !WriteOutputFile(peak, *packed, before.st_mode & 0777).ok())
    return;
  if (before.st_uid != geteuid()) (void)!lchown(peak.c_str(), before.st_uid, before.st_gid);
  const timespec times[] = {before.st_atim, before.st_mtim};  // which snapshot is the older one is told by them
  utimensat(AT_FDCWD, peak.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

absl::StatusOr<std::string> SaveDeadProfile(const std::string& path, const std::string& directory,
                                            const format::MemoryNote& note) {
  // Its end as it can be known now, beside the profiles of its later programs.
  absl::StatusOr<Profile> profile = ReadProfile(path);
  if (!profile.ok()) return profile.status();
  const int descriptor = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return ErrnoStatus(errno, "cannot open", path);
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const bool stays = directory.empty() || directory == FolderOf(path);
  const std::string to = stays ? path : Joined(directory, name);
  CopyOptions options;
  options.is_snapshot = false;
  options.effort = Effort::kThorough;
  options.overwrite = stays;
  options.saved = true;
  options.replaced = profile->end == EndState::kExec;
  options.note = note;
  const absl::Status copied = CopyProfile(descriptor, path, to, options);
  struct stat original {};
  const bool is_known = fstat(descriptor, &original) == 0;
  close(descriptor);
  if (!copied.ok()) return copied;
  if (stays) {
    // A watch of root's leaves it to its owner.
    if (is_known && original.st_uid != geteuid()) (void)!lchown(to.c_str(), original.st_uid, original.st_gid);
    PackPeakOf(to);
    return to;
  }
  MoveSnapshots(path, to, [](const std::string&) {});
  PackPeakOf(to);
  if (unlink(path.c_str()) != 0) return ErrnoStatus(errno, absl::StrCat("saved to ", to, ", but cannot remove"), path);
  return to;
}

void RemoveSavedBeyond(const std::string& directory, uint32_t keep, const std::string& only_exe) {
  absl::StatusOr<std::vector<std::string>> paths = ProfilesIn(directory);
  if (!paths.ok()) return;
  std::map<std::pair<std::string, std::string>, std::vector<std::pair<uint64_t, std::string>>> programs;
  for (const std::string& path : *paths) {
    ProfileIdentity identity;
    if (!IdentityOf(path, &identity) || !identity.saved || LivenessOf(path, identity) != Liveness::kDead) continue;
    if (only_exe.empty() || identity.exe == only_exe)
      programs[{identity.host, identity.exe}].emplace_back(identity.start_realtime_ns, path);
  }
  for (auto& [program, found] : programs) {
    std::sort(found.begin(), found.end());
    for (size_t i = 0; i + keep < found.size(); i++) RemoveProfile(found[i].second);
  }
}

}  // namespace cadastre
