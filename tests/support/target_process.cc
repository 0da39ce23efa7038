#include "tests/support/target_process.h"

#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

extern char** environ;

namespace cadastre::testing {
namespace {

bool StartsWith(const char* text, const char* prefix) { return strncmp(text, prefix, strlen(prefix)) == 0; }

pid_t Start(const std::vector<std::string>& command, const std::vector<std::string>& added, int stdout_fd) {
  std::vector<char*> arguments, variables;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  for (char** variable = environ; *variable != nullptr; variable++) {
    if (!StartsWith(*variable, "LD_PRELOAD=") && !StartsWith(*variable, "CADASTRE_")) variables.push_back(*variable);
  }
  for (const std::string& variable : added) variables.push_back(const_cast<char*>(variable.c_str()));
  variables.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (stdout_fd >= 0) posix_spawn_file_actions_adddup2(&actions, stdout_fd, STDOUT_FILENO);
  pid_t pid = -1;
  if (posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), variables.data()) != 0) pid = -1;
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

}  // namespace

ScratchDirectory::ScratchDirectory(const std::string& purpose) {
  const char* base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  path_ = std::string(base) + "/cadastre-test-" + purpose + "-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) path_.clear();
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string PreloadLibrary() {
  const char* replaced = getenv("CADASTRE_TEST_LIBRARY");
  return replaced != nullptr ? replaced : CADASTRE_BUILT_LIBRARY;
}

pid_t StartRecorded(const std::vector<std::string>& command, const std::string& options, const std::string& out,
                    int stdout_fd) {
  return Start(command, {"LD_PRELOAD=" + PreloadLibrary(), "CADASTRE_OPTIONS=" + options + ",out=" + out}, stdout_fd);
}

pid_t StartBare(const std::vector<std::string>& command, int stdout_fd) { return Start(command, {}, stdout_fd); }

int WaitFor(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int RunForOutput(const std::vector<std::string>& command, std::string* output) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return -1;
  pid_t pid = StartBare(command, pipe_fds[1]);
  close(pipe_fds[1]);
  char bytes[65536];
  ssize_t got;
  while ((got = read(pipe_fds[0], bytes, sizeof(bytes))) > 0) output->append(bytes, got);
  close(pipe_fds[0]);
  return pid < 0 ? -1 : WaitFor(pid);
}

std::string ProfileOf(const std::string& out, pid_t pid) {
  glob_t found{};
  std::string pattern = out + "/cadastre-*-" + std::to_string(pid) + "-*.cad";
  std::string newest;
  time_t newest_time = 0;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      struct stat status;
      if (stat(found.gl_pathv[i], &status) == 0 && (newest.empty() || status.st_mtime >= newest_time)) {
        newest = found.gl_pathv[i];
        newest_time = status.st_mtime;
      }
    }
  }
  globfree(&found);
  return newest;
}

}  // namespace cadastre::testing
