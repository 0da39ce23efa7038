// Where the live files of a program lie: the option `out` as the target understands it, read from outside.
//
// `out` is a directory, or a directory and a name that ends in ".cad"; both may hold %e %h %p %t, which only the target
// can fill in: after an exec it is another program. So files are looked for by pattern, and whose they are is read from
// their headers (live_file.h). Errors: a Status that says why nothing can be recorded there. Thread-safety: reads
// directories.
//
// Example:
//   absl::StatusOr<LivePlace> place = LivePlace::Find("/var/cadastre/%e");
//   if (place.ok()) for (const std::string& path : place->FilesOf(4242)) ...
#ifndef CADASTRE_REPORT_LIVE_PLACE_H_
#define CADASTRE_REPORT_LIVE_PLACE_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cadastre {

class LivePlace {
 public:
  // `out` is a value of that option. Its directory, of a pattern the part above, must be one that can be written to.
  static absl::StatusOr<LivePlace> Find(const std::string& out);

  const std::string& out() const { return out_; }              // absolute, for a program may change its directory
  const std::string& directory() const { return directory_; }  // must be there; patterns begin below it
  bool is_pattern() const { return is_pattern_; }

  // Files there that process `pid` may have made, by their names; those of any process for 0.
  std::vector<std::string> FilesOf(pid_t pid) const;
  // Directories there in which such files can lie, and those above them down from `directory`.
  std::vector<std::string> DirectoriesOf(pid_t pid) const;

 private:
  std::string out_, directory_;
  bool is_pattern_ = false;
};

// The directory of `out` that must be there: of a pattern or a file's name the part above. `rest` is what follows it.
std::string LiveDirectoryOf(const std::string& out, std::string* rest);

// The directory that the target chooses when `out` does not say: /dev/shm, else $XDG_RUNTIME_DIR.
std::string DefaultLiveDirectory();

// Where a process leaves word that it could not make its file, in one of its directories: a symbolic link whose target
// is the reason.
std::string ReasonPathOf(const std::string& directory, pid_t pid);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LIVE_PLACE_H_
