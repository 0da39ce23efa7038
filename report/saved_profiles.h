// Profiles that dead processes left: which they are, putting them away, and how many are kept.
//
// A profile is dead when no process can write to its file any more, in whatever namespace (symbolizer/file_use.h);
// where that cannot be known, when the process table of its own pid namespace says so. A saved one is packed to what is
// used and marked (format::Outcome::saved). Never overwrites, follows no link. Errors: a Status with the path; the
// original stays until its copy is whole. Thread-safety: works on files.
//
// Example:
//   for (const std::string& path : ProfilesIn("/dev/shm")) {
//     if (LivenessOf(path, identity) == Liveness::kDead) SaveDeadProfile(path, "/var/cadastre", {});
//   }
#ifndef CADASTRE_REPORT_SAVED_PROFILES_H_
#define CADASTRE_REPORT_SAVED_PROFILES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "interposer/profile_format.h"
#include "report/live_file.h"

namespace cadastre {

// Paths of the files *.cad in a directory, in order of name; with their snapshots (*.cad@LABEL) if asked for.
absl::StatusOr<std::vector<std::string>> ProfilesIn(const std::string& directory, bool with_snapshots = false);

// False: not a profile, or not ours to read.
bool IdentityOf(const std::string& path, ProfileIdentity* identity);

enum class Liveness { kDead, kInUse, kUnknown };
Liveness LivenessOf(const std::string& path, const ProfileIdentity& identity);

// Puts a dead profile away, with its snapshots: packed in its place if `directory` is empty, else as a file of the same
// name there, and removed where it was. Returns where it is now. `note`: how its memory stood, if its time is set.
absl::StatusOr<std::string> SaveDeadProfile(const std::string& path, const std::string& directory,
                                            const format::MemoryNote& note);

// Snapshots of `from` become those of `to`. Complains once for each that stays.
void MoveSnapshots(const std::string& from, const std::string& to, const std::function<void(std::string)>& say);

// Its snapshot @peak, if there is one, takes less room from now on, as what has ended does; else nothing changes.
void PackPeakOf(const std::string& path);

// Of the dead, saved profiles of each program in `directory`, removes the oldest beyond `keep`, with their snapshots.
// `only_exe`: of this program alone (path of its executable).
void RemoveSavedBeyond(const std::string& directory, uint32_t keep, const std::string& only_exe = "");

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SAVED_PROFILES_H_
