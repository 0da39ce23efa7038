#include "interposer/profile_name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <initializer_list>

#include "interposer/decimal.h"
#include "interposer/process_facts.h"
#include "interposer/raw_syscall.h"

namespace cadastre {
namespace {

// "DIR/NAME.cad", or "DIR/NAME-2.cad" and so on.
bool MakePath(const ProfileSpec& spec, uint32_t number, char* out, size_t capacity) {
  size_t directory = strlen(spec.directory), name = strlen(spec.name);
  if (directory + name + 20 > capacity) return false;
  memcpy(out, spec.directory, directory);
  out[directory++] = '/';
  memcpy(out + directory, spec.name, name + 1);
  if (number <= 1) return true;
  size_t stem = name > 4 && memcmp(spec.name + name - 4, ".cad", 4) == 0 ? name - 4 : name;
  char* tail = out + directory + stem;
  const Decimal digits(number);
  *tail++ = '-';
  memcpy(tail, digits.text(), digits.length());
  memcpy(tail + digits.length(), ".cad", 5);
  return true;
}

bool IsTaken(const char* path) {
  struct stat existing {};
  return RawSyscall(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(&existing),
                    AT_SYMLINK_NOFOLLOW) == 0;
}

// Below it every number is tried, so that names have no gaps; beyond, a directory of ten thousand profiles of one name
// (a fixed `out` and short-lived children) must not cost each new one as many system calls.
constexpr uint32_t kNumbersTriedInTurn = 16, kLargestNumber = 1u << 20;

// The number after the largest that is taken, if none is missing; else one that is free.
uint32_t FreeNumberAfter(const ProfileSpec& spec, uint32_t taken, char* path, size_t capacity) {
  uint32_t free = taken;
  do {
    taken = free;
    free *= 2;
    MakePath(spec, free, path, capacity);
  } while (free < kLargestNumber && IsTaken(path));
  while (free - taken > 1) {
    const uint32_t middle = taken + (free - taken) / 2;
    MakePath(spec, middle, path, capacity);
    (IsTaken(path) ? taken : free) = middle;
  }
  return free;
}

}  // namespace

long CreateProfileFile(const ProfileSpec& spec, char* path, size_t capacity) {
  if (!MakePath(spec, 0, path, capacity)) return -ENAMETOOLONG;
  // Others may take the names that were free: a storm of children that all begin now.
  constexpr uint32_t kAttempts = 1000;
  uint32_t number = 0;
  for (uint32_t attempt = 0; attempt < kAttempts; attempt++) {
    number = number == kNumbersTriedInTurn ? FreeNumberAfter(spec, number, path, capacity) : number + 1;
    MakePath(spec, number, path, capacity);
    const long opened = RawSyscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path),
                                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, spec.mode);
    if (opened != -EEXIST) return opened;
  }
  return -EEXIST;
}

void ProfileLeaveReason(const char* directory, uint32_t pid, const ProfileError& error) {
  static char path[PATH_MAX];
  static char text[256];
  constexpr char kStem[] = "/cadastre-";
  const size_t length = strlen(directory);
  if (length + 40 > sizeof(path)) return;
  memcpy(path, directory, length);
  const Decimal digits(pid);
  char* tail = path + length;
  memcpy(tail, kStem, sizeof(kStem) - 1);
  tail += sizeof(kStem) - 1;
  memcpy(tail, digits.text(), digits.length());
  memcpy(tail + digits.length(), ".why", 5);
  size_t used = 0;
  for (const char* part : {error.what, ": ", ErrorText(error.error)}) {
    for (; *part != '\0' && used + 1 < sizeof(text); part++) text[used++] = *part;
  }
  text[used] = '\0';
  RawSyscall(SYS_symlinkat, reinterpret_cast<long>(text), AT_FDCWD, reinterpret_cast<long>(path));
}

}  // namespace cadastre
