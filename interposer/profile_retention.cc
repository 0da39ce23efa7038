#include "interposer/profile_retention.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "interposer/options.h"
#include "interposer/profile_format.h"
#include "interposer/raw_syscall.h"

namespace cadastre {
namespace {

struct DirectoryEntry {  // linux_dirent64, getdents64(2)
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[];
};

struct Oldest {
  char name[256];
  uint64_t started_ns;
  uint32_t count;
};

char entries[16 * 1024];  // static: this may run on a small stack
format::Header header;

bool StartsWith(const char* text, const char* prefix, size_t length) { return strncmp(text, prefix, length) == 0; }

bool EndsWithCad(const char* name) {
  const size_t length = strlen(name);
  return length > 4 && strcmp(name + length - 4, ".cad") == 0;
}

bool IsDeadAndSaved(int directory, const char* name) {
  long fd =
      RawSyscall(SYS_openat, directory, reinterpret_cast<long>(name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  long got = RawSyscall(SYS_pread64, fd, reinterpret_cast<long>(&header), sizeof(header), 0);
  RawSyscall(SYS_close, fd);
  return got == static_cast<long>(sizeof(header)) && memcmp(header.magic, format::kMagic, sizeof(header.magic)) == 0 &&
         header.version == format::kVersion && header.outcome.saved == 1 &&
         RawSyscall(SYS_kill, header.pid, 0) == -ESRCH;
}

template <typename Visit>
void ForEachWithPrefix(int directory, const char* prefix, Visit visit) {
  const size_t prefix_length = strlen(prefix);
  RawSyscall(SYS_lseek, directory, 0, 0);
  for (;;) {
    long got = RawSyscall(SYS_getdents64, directory, reinterpret_cast<long>(entries), sizeof(entries));
    if (got <= 0) return;
    for (long at = 0; at < got;) {
      auto* entry = reinterpret_cast<DirectoryEntry*>(entries + at);
      at += entry->length;
      if (StartsWith(entry->name, prefix, prefix_length)) visit(entry->name);
    }
  }
}

void FindOldest(int directory, const char* prefix, Oldest* oldest) {
  oldest->count = 0;
  ForEachWithPrefix(directory, prefix, [&](const char* name) {
    if (!EndsWithCad(name) || strlen(name) >= sizeof(oldest->name) || !IsDeadAndSaved(directory, name)) return;
    if (oldest->count++ == 0 || header.start_realtime_ns < oldest->started_ns) {
      oldest->started_ns = header.start_realtime_ns;
      strcpy(oldest->name, name);
    }
  });
}

// NAME@LABEL: they go with their profile.
void RemoveSnapshots(int directory, const char* name) {
  static char prefix[sizeof(Oldest::name) + 1];
  strcpy(prefix, name);
  strcat(prefix, "@");
  ForEachWithPrefix(directory, prefix, [&](const char* snapshot) {
    RawSyscall(SYS_unlinkat, directory, reinterpret_cast<long>(snapshot), 0);
  });
}

}  // namespace

void RemoveOldProfiles(const char* directory, const char* name, uint32_t keep) {
  if (keep == kKeepAll) return;
  // "cadastre-HOST-EXE-PID-SECONDS.cad": what stands before the last two dashes is the program on its host.
  static char prefix[256];
  const size_t length = strlen(name);
  if (length >= sizeof(prefix)) return;
  memcpy(prefix, name, length + 1);
  for (int cut = 0; cut < 2; cut++) {
    char* dash = strrchr(prefix, '-');
    if (dash == nullptr) return;
    dash[cut == 0 ? 0 : 1] = '\0';
  }
  long fd = RawSyscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static Oldest oldest;
  for (int removed = 0; removed < 1000; removed++) {
    FindOldest(static_cast<int>(fd), prefix, &oldest);
    if (oldest.count <= keep) break;
    if (RawSyscall(SYS_unlinkat, fd, reinterpret_cast<long>(oldest.name), 0) != 0) break;
    RemoveSnapshots(static_cast<int>(fd), oldest.name);
  }
  RawSyscall(SYS_close, fd);
}

}  // namespace cadastre
