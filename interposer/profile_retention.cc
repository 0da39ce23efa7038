#include "interposer/profile_retention.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

alignas(4096) char entries[16 * 1024];  // static: this may run on a small stack
format::Header header;

bool StartsWith(const char* text, const char* prefix, size_t length) { return strncmp(text, prefix, length) == 0; }

// Is the string of that index `text`? The file is another process's: nothing in it is trusted.
bool StringIs(int fd, uint32_t unit, const char* text) {
  static char bytes[PATH_MAX];
  const format::Region& region = header.regions[format::kRegionStrings];
  const size_t length = strlen(text);
  format::StringHeader string;
  if (unit > region.bytes / 8 || region.offset > INT64_MAX / 2 || length > sizeof(bytes)) return false;
  const long at = static_cast<long>(region.offset + 8ull * unit);
  return RawSyscall(SYS_pread64, fd, reinterpret_cast<long>(&string), sizeof(string), at) == sizeof(string) &&
         string.length == length &&
         RawSyscall(SYS_pread64, fd, reinterpret_cast<long>(bytes), static_cast<long>(length),
                    at + static_cast<long>(sizeof(string))) == static_cast<long>(length) &&
         memcmp(bytes, text, length) == 0;
}

// Saved, or ended by itself with nobody who means to save it. The process table knows our own namespace only: what ran
// elsewhere is dead for certain when it was saved.
bool MayGo(const ProcessFacts& facts) {
  const bool is_here = header.pid_namespace == facts.pid_namespace;
  const bool is_gone = RawSyscall(SYS_kill, header.pid, 0) == -ESRCH;
  if (header.outcome.saved == 1) return !is_here || is_gone;
  return header.outcome.end == format::kEndExit && header.outcome.awaited == 0 && is_here && is_gone;
}

bool EndsWithCad(const char* name) {
  const size_t length = strlen(name);
  return length > 4 && strcmp(name + length - 4, ".cad") == 0;
}

bool IsAnotherToGo(int directory, const char* name, const ProcessFacts& facts) {
  long fd =
      RawSyscall(SYS_openat, directory, reinterpret_cast<long>(name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  long got = RawSyscall(SYS_pread64, fd, reinterpret_cast<long>(&header), sizeof(header), 0);
  const bool may_go =
      got == static_cast<long>(sizeof(header)) && memcmp(header.magic, format::kMagic, sizeof(header.magic)) == 0 &&
      format::IsKnownVersion(header.version) && header.is_snapshot == 0 && MayGo(facts) &&
      StringIs(static_cast<int>(fd), header.exe, facts.exe) && StringIs(static_cast<int>(fd), header.host, facts.host);
  RawSyscall(SYS_close, fd);
  return may_go;
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

void FindOldest(int directory, const ProcessFacts& facts, Oldest* oldest) {
  oldest->count = 0;
  ForEachWithPrefix(directory, "", [&](const char* name) {
    if (!EndsWithCad(name) || strlen(name) >= sizeof(oldest->name) || !IsAnotherToGo(directory, name, facts)) return;
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

void RemoveOldProfiles(const char* directory, const ProcessFacts& facts, uint32_t keep) {
  if (keep == kKeepAll) return;
  long fd = RawSyscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  static Oldest oldest;
  for (int removed = 0; removed < 1000; removed++) {
    FindOldest(static_cast<int>(fd), facts, &oldest);
    if (oldest.count <= keep) break;
    if (RawSyscall(SYS_unlinkat, fd, reinterpret_cast<long>(oldest.name), 0) != 0) break;
    RemoveSnapshots(static_cast<int>(fd), oldest.name);
  }
  RawSyscall(SYS_close, fd);
}

}  // namespace cadastre
