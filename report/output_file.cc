#include "report/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace cadastre {

absl::Status ErrnoStatus(int error, const std::string& operation, const std::string& path) {
  std::string message = absl::StrCat(operation, " ", path, ": ", strerror(error));
  if (error == ENOENT || error == ESRCH) return absl::NotFoundError(message);
  if (error == EEXIST) return absl::AlreadyExistsError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  return absl::InternalError(message);
}

OutputFile::OutputFile(std::string path, std::string temporary, int descriptor)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, "")),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty()) return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it names a directory"));
  // The rename would put a file in the place of a device, a pipe or a link, and /dev/null must survive us.
  struct stat existing {};
  if (lstat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is not a regular file"));
  }
  // Hidden and without the name's ending, so that no reader of *.cad takes it for a profile.
  std::string temporary = absl::StrCat(directory, ".cadastre-", name.substr(0, 200), ".", getpid(), ".tmp");
  int descriptor = open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return ErrnoStatus(errno, "cannot write", path);
  return OutputFile(path, temporary, descriptor);
}

absl::Status OutputFile::Commit(Overwrite overwrite) {
  int result = overwrite == kOverwrite
                   ? rename(temporary_.c_str(), path_.c_str())
                   : renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (result != 0 && overwrite == kRefuseToOverwrite && errno == EINVAL) {
    // A file system without RENAME_NOREPLACE (NFS): a hard link refuses as well.
    result = link(temporary_.c_str(), path_.c_str());
    if (result == 0) unlink(temporary_.c_str());
  }
  if (result != 0) return ErrnoStatus(errno, "cannot write", path_);
  temporary_.clear();
  return absl::OkStatus();
}

absl::Status WriteOutputFile(const std::string& path, const std::string& text, mode_t mode) {
  absl::StatusOr<OutputFile> out = OutputFile::Create(path);
  if (!out.ok()) return out.status();
  fchmod(out->descriptor(), mode);
  for (size_t at = 0; at < text.size();) {
    const ssize_t put = write(out->descriptor(), text.data() + at, text.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return ErrnoStatus(put < 0 ? errno : ENOSPC, "cannot write", path);
    at += static_cast<size_t>(put);
  }
  return out->Commit(OutputFile::kOverwrite);
}

}  // namespace cadastre
