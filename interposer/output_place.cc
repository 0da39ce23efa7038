#include "interposer/output_place.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interposer/raw_syscall.h"

namespace cadastre {
namespace {

bool IsWritable(const char* directory) {
  return RawSyscall(SYS_faccessat, AT_FDCWD, reinterpret_cast<long>(directory), W_OK | X_OK) == 0;
}

const char* DefaultDirectory(const ProcessFacts& facts) {
  if (IsWritable("/dev/shm")) return "/dev/shm";
  const char* runtime = facts.environment("XDG_RUNTIME_DIR");
  return runtime != nullptr && runtime[0] == '/' ? runtime : "/dev/shm";
}

// What is there already may be somebody's link to another place.
bool MakeDirectory(const char* path) {
  RawSyscall(SYS_mkdirat, AT_FDCWD, reinterpret_cast<long>(path), 0700);
  struct stat status {};
  return RawSyscall(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(&status),
                    AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

}  // namespace

bool ChooseOutputPlace(const Options& options, const ProcessFacts& facts, uint32_t pid, OutputPlace* place) {
  static char text[PATH_MAX];
  OutputNames names = {facts.exe[0] != '\0' ? facts.exe_name() : "unknown", facts.host, pid,
                       facts.start_realtime_ns / 1000000000ull};
  const char* wanted = options.out[0] != '\0' ? options.out : DefaultDirectory(facts);
  const char* first = nullptr;
  if (!ExpandOutput(wanted, names, text, sizeof(text), &first)) return false;
  SplitOutput(text, place->directory, sizeof(place->directory), place->name, sizeof(place->name));
  if (place->name[0] == '\0') MakeProfileName(facts, pid, place->name, sizeof(place->name));
  // A directory that is named by a pattern cannot be there yet.
  const size_t length = strlen(place->directory);
  for (size_t i = first != nullptr ? static_cast<size_t>(first - text) : length + 1; i <= length; i++) {
    if (place->directory[i] != '/' && place->directory[i] != '\0') continue;
    const char kept = place->directory[i];
    place->directory[i] = '\0';
    const bool is_made = MakeDirectory(place->directory);
    place->directory[i] = kept;
    if (!is_made) return false;
  }
  return true;
}

}  // namespace cadastre
