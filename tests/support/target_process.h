// Starts a program under the preload and finds the profile it left: for tests that run many short targets.
//
// Errors: REQUIRE-free; functions return -1, an empty string or a status, and the test says what that means.
// Thread-safety: none. The library's path is the build's own; it can be replaced by the environment variable
// CADASTRE_TEST_LIBRARY.
//
// Example:
//   ScratchDirectory out("statistics");
//   pid_t pid = StartRecorded({"/path/to/target", "arg"}, "interval=4096,seed=7", out.path());
//   int status = WaitFor(pid);
//   absl::StatusOr<Profile> profile = ReadProfile(ProfileOf(out.path(), pid));
#ifndef CADASTRE_TESTS_SUPPORT_TARGET_PROCESS_H_
#define CADASTRE_TESTS_SUPPORT_TARGET_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace cadastre::testing {

// A new directory on tmpfs (where there is one), removed with all that is in it.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& purpose);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string PreloadLibrary();

// Starts command[0] with the library preloaded and CADASTRE_OPTIONS="<options>,out=<out>". stdout_fd: the target's
// standard output, -1 = inherited. -1: could not start.
pid_t StartRecorded(const std::vector<std::string>& command, const std::string& options, const std::string& out,
                    int stdout_fd = -1);

// The same without the preload.
pid_t StartBare(const std::vector<std::string>& command, int stdout_fd = -1);

// Exit status, or 128 + signal.
int WaitFor(pid_t pid);

// Runs to the end without the preload and returns the exit status; what it prints goes to `output`.
int RunForOutput(const std::vector<std::string>& command, std::string* output);

// The newest profile of process `pid` in directory `out`; empty if there is none.
std::string ProfileOf(const std::string& out, pid_t pid);

}  // namespace cadastre::testing

#endif  // CADASTRE_TESTS_SUPPORT_TARGET_PROCESS_H_
