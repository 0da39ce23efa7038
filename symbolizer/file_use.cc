#include "symbolizer/file_use.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace cadastre {
namespace {

// Whoever opens the file while the lease is held makes the kernel send SIGIO, which ends a program by default.
class SigioHeldBack {
 public:
  SigioHeldBack() {
    sigemptyset(&sigio_);
    sigaddset(&sigio_, SIGIO);
    pthread_sigmask(SIG_BLOCK, &sigio_, &before_);
  }
  ~SigioHeldBack() {
    const timespec no_wait{};
    if (!sigismember(&before_, SIGIO)) sigtimedwait(&sigio_, nullptr, &no_wait);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigioHeldBack(const SigioHeldBack&) = delete;

 private:
  sigset_t sigio_, before_;
};

}  // namespace

FileUse FileUseOf(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return FileUse::kUnknown;
  FileUse use = FileUse::kUnknown;
  struct stat status;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
    SigioHeldBack guard;
    if (fcntl(descriptor, F_SETLEASE, F_RDLCK) == 0) {
      fcntl(descriptor, F_SETLEASE, F_UNLCK);
      use = FileUse::kIdle;
    } else if (errno == EAGAIN) {
      use = FileUse::kWritten;
    }
  }
  close(descriptor);
  return use;
}

}  // namespace cadastre
