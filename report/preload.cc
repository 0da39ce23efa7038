#include "report/preload.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/function_name.h"
#include "report/live_place.h"
#include "report/process_info.h"

namespace cadastre {
namespace {

std::string Resolved(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : "";
}

std::string OwnDirectory() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string exe(path, std::max<ssize_t>(length, 0));
  if (exe.empty()) {  // a root without /proc
    const auto* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    exe = started != nullptr ? Resolved(started) : "";
  }
  return exe.empty() ? "." : exe.substr(0, exe.rfind('/'));
}

// Whether a process was started with this text in its environment, as far as we may look.
bool AnyProcessNames(const std::string& text) {
  DIR* listing = opendir("/proc");
  if (listing == nullptr) return false;
  bool named = false;
  while (dirent* entry = named ? nullptr : readdir(listing)) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || atoi(entry->d_name) == getpid()) continue;
    named = absl::StrContains(ReadWholeFile(absl::StrCat("/proc/", entry->d_name, "/environ")), text);
  }
  closedir(listing);
  return named;
}

}  // namespace

// The loader splits LD_PRELOAD at spaces and colons and knows no quoting, so a library in such a directory is named
// through a symbolic link to the directory. The link lies in a new directory of a random name that is ours alone to
// write, so that nobody can have put it there before us or turn it elsewhere; others may follow it, for the program may
// change its user. It goes with us, unless programs that outlive us still have it in their environment.
class Preload::Link {
 public:
  static absl::StatusOr<std::shared_ptr<Link>> To(const std::string& directory) {
    std::string error;
    for (const std::string& base : {DefaultLiveDirectory(), std::string("/tmp")}) {
      std::string made = base + "/cadastre-lib-XXXXXX";
      if (mkdtemp(made.data()) == nullptr) {
        error = absl::StrCat(base, ": ", strerror(errno));
        continue;
      }
      auto link = std::make_shared<Link>(made);
      if (chmod(made.c_str(), 0711) == 0 && symlink(directory.c_str(), link->path().c_str()) == 0) return link;
      error = absl::StrCat(link->path(), ": ", strerror(errno));
    }
    return absl::FailedPreconditionError(absl::StrCat(
        directory,
        ": a path with spaces or colons cannot stand in LD_PRELOAD, and no link to it can be made: ", error));
  }
  explicit Link(std::string directory) : directory_(std::move(directory)) {}
  ~Link() {
    if (AnyProcessNames(path())) return;
    unlink(path().c_str());
    rmdir(directory_.c_str());
  }
  Link(const Link&) = delete;
  std::string path() const { return directory_ + "/lib"; }

 private:
  std::string directory_;
};

absl::StatusOr<Preload> Preload::Find() {
  Preload preload;
  std::string own = OwnDirectory();
  const char* given = getenv("CADASTRE_LIBRARY");
  if (given != nullptr && *given != '\0') {
    preload.library_ = Resolved(given);
    if (preload.library_.empty())
      return absl::NotFoundError(absl::StrCat("$CADASTRE_LIBRARY: ", given, ": ", strerror(errno)));
  } else {
    for (const char* beside : {"/../lib/cadastre/libcadastre.so", "/../interposer/libcadastre.so", "/libcadastre.so"}) {
      preload.library_ = Resolved(own + beside);
      if (!preload.library_.empty()) break;
    }
    if (preload.library_.empty()) {
      return absl::NotFoundError(absl::StrCat("libcadastre.so is not beside this command (", own, "/../lib/cadastre, ",
                                              own, "/../interposer); name it in $CADASTRE_LIBRARY"));
    }
  }
  preload.entry_ = preload.library_;
  if (preload.library_.find_first_of(" :\t\n") == std::string::npos) return preload;
  absl::StatusOr<std::shared_ptr<Link>> link = Link::To(preload.library_.substr(0, preload.library_.rfind('/')));
  if (!link.ok()) return link.status();
  preload.link_ = *link;
  preload.entry_ = absl::StrCat(preload.link_->path(), "/", FileName(preload.library_));
  return preload;
}

std::string Preload::CompanionLibrary() const {
  std::string path = absl::StrCat(library_.substr(0, library_.rfind('/')), "/libcadastre-unwind.so");
  return access(path.c_str(), R_OK) == 0 ? path : "";
}

void Preload::SetEnvironment(const std::string& options) const {
  const char* before = getenv("LD_PRELOAD");
  std::string chain = before != nullptr ? before : "";
  // A run inside a run: once is enough.
  std::vector<std::string> entries = absl::StrSplit(chain, absl::ByAnyChar(" :"), absl::SkipEmpty());
  bool present = std::find(entries.begin(), entries.end(), entry_) != entries.end();
  if (!present || entries[0] != entry_)
    setenv("LD_PRELOAD", chain.empty() ? entry_.c_str() : absl::StrCat(entry_, ":", chain).c_str(), 1);
  const char* old_options = getenv("CADASTRE_OPTIONS");
  std::string merged = old_options != nullptr ? old_options : "";
  if (!options.empty()) absl::StrAppend(&merged, merged.empty() ? "" : ",", options);
  setenv("CADASTRE_OPTIONS", merged.c_str(), 1);
}

std::string OptionValue(const std::string& options, const std::string& name) {
  std::string value;
  for (absl::string_view item : absl::StrSplit(options, ',')) {
    if (absl::StartsWith(item, name + "=")) value = std::string(item.substr(name.size() + 1));
  }
  return value;
}

}  // namespace cadastre
