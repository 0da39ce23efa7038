#include "report/preload.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "report/function_name.h"

namespace cadastre {
namespace {

std::string OwnDirectory() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return ".";
  std::string exe(path, length);
  return exe.substr(0, exe.rfind('/'));
}

std::string Resolved(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? resolved : "";
}

// The loader splits LD_PRELOAD at spaces and colons and knows no quoting, so a library in such a directory is named
// through a symbolic link to the directory. The link stays: programs that outlive us may still start others.
absl::StatusOr<std::string> EntryFor(const std::string& library) {
  if (library.find_first_of(" :\t\n") == std::string::npos) return library;
  std::string directory = library.substr(0, library.rfind('/'));
  std::string link = absl::StrFormat("%s/cadastre-lib-%d-%08x", DefaultLiveDirectory(), geteuid(),
                                     static_cast<uint32_t>(std::hash<std::string>{}(directory)));
  (void)!symlink(directory.c_str(), link.c_str());
  char target[PATH_MAX];
  ssize_t length = readlink(link.c_str(), target, sizeof(target));
  struct stat status;
  bool ours = length > 0 && std::string(target, length) == directory && lstat(link.c_str(), &status) == 0 &&
              status.st_uid == geteuid();
  if (!ours)
    return absl::FailedPreconditionError(absl::StrCat(
        library, ": a path with spaces or colons cannot stand in LD_PRELOAD, and ", link, " cannot be used instead"));
  return absl::StrCat(link, "/", FileName(library));
}

}  // namespace

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
  absl::StatusOr<std::string> entry = EntryFor(preload.library_);
  if (!entry.ok()) return entry.status();
  preload.entry_ = *entry;
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

std::string DefaultLiveDirectory() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  return runtime != nullptr && runtime[0] == '/' ? runtime : "/dev/shm";
}

std::string LiveFileName(const std::string& program, pid_t pid, int64_t start_seconds) {
  utsname names{};
  uname(&names);
  auto clean = [](absl::string_view text, size_t limit) {
    std::string out;
    for (char c : text.substr(0, limit)) {
      unsigned char byte = static_cast<unsigned char>(c);
      // A comma would end the option that carries the name.
      out += byte <= ' ' || byte == 0x7F || c == '/' || c == '@' || c == ',' ? '_' : c;
    }
    return out;
  };
  return absl::StrCat("cadastre-", clean(names.nodename, 64), "-", clean(FileName(program), 80), "-", pid, "-",
                      start_seconds, ".cad");
}

std::string OptionValue(const std::string& options, const std::string& name) {
  std::string value;
  for (absl::string_view item : absl::StrSplit(options, ',')) {
    if (absl::StartsWith(item, name + "=")) value = std::string(item.substr(name.size() + 1));
  }
  return value;
}

}  // namespace cadastre
