// A library or debug file that somebody cuts while we read it must cost its names, never the report.
#include "symbolizer/mapping_guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

constexpr size_t kPage = 4096;

// Four pages of 'x', mapped.
class CutFile {
 public:
  CutFile() : descriptor_(open((directory_ / "file").c_str(), O_RDWR | O_CREAT | O_EXCL, 0600)) {
    const std::string bytes(4 * kPage, 'x');
    REQUIRE(write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    mapping_ = mmap(nullptr, 4 * kPage, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    REQUIRE(mapping_ != MAP_FAILED);
  }
  ~CutFile() {
    munmap(mapping_, 4 * kPage);
    close(descriptor_);
  }
  CutFile(const CutFile&) = delete;
  CutFile& operator=(const CutFile&) = delete;

  void Cut(size_t pages) { REQUIRE(ftruncate(descriptor_, static_cast<off_t>(pages * kPage)) == 0); }
  char At(size_t page) const { return static_cast<volatile char*>(mapping_)[page * kPage + 17]; }
  const void* mapping() const { return mapping_; }

 private:
  testing::TemporaryDirectory directory_;
  int descriptor_;
  void* mapping_ = nullptr;
};

TEST_CASE("What a file has no more reads as zeros", "[mapping_guard]") {
  CutFile file, other;
  MappingGuard guard(file.mapping(), 4 * kPage);
  auto second = std::make_unique<MappingGuard>(other.mapping(), 4 * kPage);
  CHECK(file.At(3) == 'x');
  file.Cut(1);
  CHECK(file.At(0) == 'x');
  CHECK(file.At(3) == 0);
  CHECK(file.At(1) == 0);
  other.Cut(0);
  CHECK(other.At(0) == 0);
  second = nullptr;
  CHECK(file.At(2) == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their own handlers would be what is tested
bool DiesOfSigbus(const CutFile& file, size_t page) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);
    MappingGuard guard(file.mapping(), kPage);  // of the first page alone
    (void)file.At(page);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

TEST_CASE("A fault that is none of ours ends the program as it does without us", "[mapping_guard]") {
  CutFile file;
  file.Cut(0);
  CHECK(DiesOfSigbus(file, 2));
  CHECK_FALSE(DiesOfSigbus(file, 0));
}
#endif

TEST_CASE("The last guard leaves the signal as it was found", "[mapping_guard]") {
  CutFile file;
  struct sigaction before {
  }, after{};
  sigaction(SIGBUS, nullptr, &before);
  {
    MappingGuard first(file.mapping(), kPage);
    MappingGuard second(file.mapping(), kPage);
  }
  sigaction(SIGBUS, nullptr, &after);
  CHECK(before.sa_sigaction == after.sa_sigaction);
  CHECK(before.sa_flags == after.sa_flags);
}

}  // namespace
}  // namespace cadastre
