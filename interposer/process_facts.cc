#include "interposer/process_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "interposer/decimal.h"
#include "interposer/elf_lookup.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_state.h"

// Where the kernel put argc, argv and envp (glibc's loader exports it since 2.2.5).
extern "C" void* __libc_stack_end;
extern "C" char** environ;

namespace cadastre {
namespace {

using ClockFunction = int (*)(clockid_t, timespec*);
ClockFunction vdso_clock;
bool clocks_stopped;
uint64_t stopped_monotonic_ns, stopped_realtime_ns;

uint64_t Now(clockid_t clock) {
  if (__builtin_expect(__atomic_load_n(&clocks_stopped, __ATOMIC_ACQUIRE), 0))
    return clock == CLOCK_REALTIME ? stopped_realtime_ns : stopped_monotonic_ns;
  timespec time{};
  ClockFunction function = __atomic_load_n(&vdso_clock, __ATOMIC_RELAXED);
  if (function != nullptr) {
    function(clock, &time);
  } else {
    RawSyscall(SYS_clock_gettime, clock, reinterpret_cast<long>(&time));
  }
  return static_cast<uint64_t>(time.tv_sec) * 1000000000ull + static_cast<uint64_t>(time.tv_nsec);
}

// argc, argv[0..argc-1], NULL, envp...: the layout of the System V x86-64 ABI, section 3.4.1. Returns argc, or 0 if
// something else lies there.
uint64_t ArgumentCount() {
  auto* words = static_cast<uint64_t*>(__libc_stack_end);
  const bool plausible = words != nullptr && words[0] >= 1 && words[0] < (1u << 24) && words[words[0] + 1] == 0;
  return plausible ? words[0] : 0;
}

// The arguments lie one behind the other, each with its NUL, as the kernel has put them there. None where somebody has
// put them elsewhere.
void FindArguments(ProcessFacts* facts) {
  const uint64_t count = ArgumentCount();
  char** arguments = static_cast<char**>(__libc_stack_end) + 1;
  for (uint64_t i = 0; i < count; i++) {
    if (i > 0 && arguments[i] != facts->arguments_end) {
      facts->arguments_end = facts->arguments_start;
      return;
    }
    if (i == 0) facts->arguments_start = arguments[0];
    facts->arguments_end = arguments[i] + strlen(arguments[i]) + 1;
  }
}

char** EnvironmentStart() {
  uint64_t count = ArgumentCount();
  return count == 0 ? environ : static_cast<char**>(__libc_stack_end) + count + 2;
}

// Copies the path of the file that is mapped at `address`; false if there is none. A line of maps is
// "start-end perms offset device inode    path".
bool FindMappedFile(uint64_t address, char* out, size_t capacity) {
  alignas(4096) static char maps[64 * 1024];  // at start-up a process has some hundred mappings at most
  const size_t length = ReadSmallFile("/proc/self/maps", maps, sizeof(maps) - 1);
  maps[length] = '\0';
  auto hex = [](const char** at) {
    uint64_t value = 0;
    for (;; (*at)++) {
      const char c = **at;
      if (c >= '0' && c <= '9') {
        value = value * 16 + static_cast<uint64_t>(c - '0');
      } else if (c >= 'a' && c <= 'f') {
        value = value * 16 + static_cast<uint64_t>(c - 'a') + 10;
      } else {
        return value;
      }
    }
  };
  for (const char* line = maps; *line != '\0';) {
    const char* end = strchr(line, '\n');
    if (end == nullptr) return false;
    const char* at = line;
    const uint64_t start = hex(&at);
    const uint64_t limit = *at == '-' ? (at++, hex(&at)) : 0;
    const auto* path = static_cast<const char*>(memchr(at, '/', static_cast<size_t>(end - at)));
    if (address >= start && address < limit) {
      const size_t bytes = path != nullptr ? static_cast<size_t>(end - path) : 0;
      if (bytes == 0 || bytes >= capacity) return false;
      memcpy(out, path, bytes);
      out[bytes] = '\0';
      return true;
    }
    line = end + 1;
  }
  return false;
}

void ReadExecutable(ProcessFacts* facts) {
  // Started as `ld.so ./program`: the kernel has loaded no interpreter, /proc/self/exe names the loader, and the loader
  // has set AT_PHDR to the program's headers.
  facts->loader_was_started = getauxval(AT_BASE) == 0;
  if (facts->loader_was_started && FindMappedFile(getauxval(AT_PHDR), facts->exe, sizeof(facts->exe))) return;
  long length = RawSyscall(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>("/proc/self/exe"),
                           reinterpret_cast<long>(facts->exe), sizeof(facts->exe) - 1);
  facts->exe[length > 0 ? length : 0] = '\0';
  // A root without /proc. The kernel's word for what was executed may be a link, or relative; its last part is a name.
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (length <= 0 && executed != nullptr && strlen(executed) < sizeof(facts->exe)) strcpy(facts->exe, executed);
}

// Field 22 of /proc/PID/stat, counted behind the last ')' because the name in field 2 may hold anything.
uint64_t ReadStartTicks() {
  static char text[1024];
  size_t length = ReadSmallFile("/proc/self/stat", text, sizeof(text));
  size_t at = length;
  while (at > 0 && text[at - 1] != ')') at--;
  if (at == 0) return 0;
  uint64_t value = 0;
  for (int field = 2; at < length && field < 22; at++) {
    if (text[at] == ' ') field++;
  }
  for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
    value = value * 10 + static_cast<uint64_t>(text[at] - '0');
  return value;
}

uint64_t ReadPidNamespace() {
  char link[64];  // pid:[4026531836]
  long length = RawSyscall(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>("/proc/self/ns/pid"),
                           reinterpret_cast<long>(link), sizeof(link));
  uint64_t value = 0;
  for (long i = 0; i < length; i++) {
    if (link[i] >= '0' && link[i] <= '9') value = value * 10 + static_cast<uint64_t>(link[i] - '0');
  }
  return value;
}

void ReadStacks(ProcessFacts* facts) {
  facts->main_thread_pointer = ThreadPointer();
  rlimit limit{};
  RawSyscall(SYS_prlimit64, 0, RLIMIT_STACK, 0, reinterpret_cast<long>(&limit));
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur == 0;
  facts->default_thread_stack_bytes = unlimited ? (2u << 20) : limit.rlim_cur;
  facts->main_stack_high = reinterpret_cast<uint64_t>(__libc_stack_end);
  // The kernel keeps at least 128 MiB free below the stack's start for it to grow into; anything nearer is the stack.
  const uint64_t reach = unlimited || limit.rlim_cur > (128u << 20) ? (128u << 20) : limit.rlim_cur;
  facts->main_stack_low = facts->main_stack_high - reach;
}

// The kernel's word for what was executed: the same file under another name, or a script, whose interpreter is the
// file.
void ReadStartedAs(ProcessFacts* facts) {
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (path == nullptr || facts->loader_was_started) return;
  const char* name = BaseName(path);
  if (strcmp(name, facts->exe_name()) == 0 || strlen(name) >= sizeof(facts->started_as)) return;
  struct stat started {
  }, file{};
  if (RawSyscall(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(path), reinterpret_cast<long>(&started), 0) != 0 ||
      RawSyscall(SYS_newfstatat, AT_FDCWD, reinterpret_cast<long>(facts->exe), reinterpret_cast<long>(&file), 0) != 0)
    return;
  if (started.st_dev == file.st_dev && started.st_ino == file.st_ino) strcpy(facts->started_as, name);
}

// Options of the java launcher whose value is the next argument.
bool TakesValue(const char* option) {
  static const char kNames[][24] = {
      "-cp",           "-classpath",  "--class-path",  "-p",          "--module-path",  "--upgrade-module-path",
      "--add-modules", "--add-opens", "--add-exports", "--add-reads", "--patch-module", "--limit-modules"};
  for (const char* name : kNames) {
    if (strcmp(option, name) == 0) return true;
  }
  return false;
}

}  // namespace

const char* BaseName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

const char* ProcessFacts::exe_name() const { return BaseName(exe); }

const char* ProcessFacts::environment(const char* name) const {
  const size_t length = strlen(name);
  for (char** entry = environ_start; entry != nullptr && *entry != nullptr; entry++) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

size_t ReadSmallFile(const char* path, char* out, size_t capacity) {
  long fd = RawSyscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t used = 0;
  while (used < capacity) {
    long got = RawSyscall(SYS_read, fd, reinterpret_cast<long>(out + used), static_cast<long>(capacity - used));
    if (got == -EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  RawSyscall(SYS_close, fd);
  return used;
}

void ReadProcessFacts(ProcessFacts* facts) {
  unsigned long vdso = getauxval(AT_SYSINFO_EHDR);
  if (vdso != 0) vdso_clock = reinterpret_cast<ClockFunction>(FindInImage(vdso, "__vdso_clock_gettime"));
  facts->start_monotonic_ns = MonotonicNow();
  facts->start_realtime_ns = RealtimeNow();
  facts->environ_start = EnvironmentStart();
  FindArguments(facts);
  ReadExecutable(facts);
  ReadStartedAs(facts);
  ReadStacks(facts);
  utsname names{};
  if (RawSyscall(SYS_uname, reinterpret_cast<long>(&names)) == 0)
    memcpy(facts->host, names.nodename, sizeof(facts->host));
  facts->host[sizeof(facts->host) - 1] = '\0';
  struct stat file {};
  if (RawSyscall(SYS_fstat, 2, reinterpret_cast<long>(&file)) == 0) {
    facts->stderr_device = file.st_dev;
    facts->stderr_inode = file.st_ino;
  }
  facts->pid_namespace = ReadPidNamespace();
  facts->start_ticks = ReadStartTicks();
}

bool StandardErrorIsUnchanged(const ProcessFacts& facts) {
  struct stat file {};
  return facts.stderr_inode != 0 && RawSyscall(SYS_fstat, 2, reinterpret_cast<long>(&file)) == 0 &&
         file.st_dev == facts.stderr_device && file.st_ino == facts.stderr_inode;
}

void StopClocks() {
  stopped_monotonic_ns = MonotonicNow();
  stopped_realtime_ns = RealtimeNow();
  __atomic_store_n(&clocks_stopped, true, __ATOMIC_RELEASE);
}

uint64_t MonotonicNow() { return Now(CLOCK_MONOTONIC); }
uint64_t MonotonicNowRoughly() { return Now(CLOCK_MONOTONIC_COARSE); }
uint64_t RealtimeNow() { return Now(CLOCK_REALTIME); }

void MakeProfileName(const ProcessFacts& facts, uint32_t pid, char* out, size_t capacity) {
  size_t used = 0;
  auto add = [&](const char* text, size_t limit) {
    for (size_t i = 0; text[i] != '\0' && i < limit && used + 8 < capacity; i++) {
      const unsigned char c = static_cast<unsigned char>(text[i]);
      out[used++] = c <= ' ' || c == 0x7f || c == '/' || c == '@' ? '_' : text[i];
    }
  };
  auto add_number = [&](uint64_t value) {
    const Decimal number(value);
    add(number.text(), number.length());
  };
  add("cadastre-", 16);
  add(facts.host, 64);
  add("-", 1);
  add(facts.exe[0] != '\0' ? facts.exe_name() : "unknown", 80);
  add("-", 1);
  add_number(pid);
  add("-", 1);
  add_number(facts.start_realtime_ns / 1000000000ull);
  memcpy(out + used, ".cad", 5);
}

size_t ReadCommandLine(const ProcessFacts& facts, char* out, size_t capacity) {
  // What /proc/self/cmdline would give: the same memory, without the file. A program that writes a title over its
  // arguments and beyond them has put something else than a NUL at their end, and then the kernel knows more.
  const auto bytes = static_cast<size_t>(facts.arguments_end - facts.arguments_start);
  if (bytes != 0 && facts.arguments_end[-1] == '\0') {
    const size_t kept = bytes < capacity ? bytes : capacity;
    memcpy(out, facts.arguments_start, kept);
    return kept;
  }
  size_t length = ReadSmallFile("/proc/self/cmdline", out, capacity);
  const uint64_t own = ArgumentCount();
  if (!facts.loader_was_started || own == 0 || length == capacity) return length;
  uint64_t all = 0;
  for (size_t i = 0; i < length; i++) all += out[i] == '\0';
  size_t skipped = 0;  // "ld.so", "--library-path", ...: what the loader has taken off the front
  for (; all > own && skipped < length; skipped++) all -= out[skipped] == '\0';
  memmove(out, out + skipped, length - skipped);
  return length - skipped;
}

size_t KeepProgramAndMainClass(char* arguments, size_t length) {
  const size_t program = strnlen(arguments, length);
  if (program >= length) return length;
  size_t kept = program + 1;
  if (strcmp(BaseName(arguments), "java") != 0) return kept;
  auto keep = [&](size_t at) {
    size_t bytes = strnlen(arguments + at, length - at);
    memmove(arguments + kept, arguments + at, bytes);
    kept += bytes;
    arguments[kept++] = '\0';
    return at + bytes + 1;
  };
  for (size_t at = kept; at < length;) {
    char* argument = arguments + at;
    const size_t next = at + strnlen(argument, length - at) + 1;
    if (strcmp(argument, "-jar") == 0 || strcmp(argument, "-m") == 0 || strcmp(argument, "--module") == 0) {
      at = keep(at);
      if (at < length) keep(at);
      break;
    }
    if (argument[0] != '-' && argument[0] != '@') {
      keep(at);
      break;
    }
    at = next;
    if (TakesValue(argument) && next < length) at = next + strnlen(arguments + next, length - next) + 1;
  }
  return kept;
}

const char* ErrorText(int error) {
  switch (error) {
    case EPERM:
      return "operation not permitted";
    case ENOENT:
      return "no such file or directory";
    case EACCES:
      return "permission denied";
    case EEXIST:
      return "file exists";
    case ENOTDIR:
      return "not a directory";
    case EMFILE:
      return "too many open files";
    case ENFILE:
      return "too many open files in the system";
    case EFBIG:
      return "file too large";
    case ENOSPC:
      return "no space left on device";
    case EDQUOT:
      return "disk quota exceeded";
    case EROFS:
      return "read-only file system";
    case ENOMEM:
      return "out of memory";
    case ENAMETOOLONG:
      return "file name too long";
    case EINVAL:
      return "not supported there";
    case EIO:
      return "input/output error";
    default:
      return "system error";
  }
}

}  // namespace cadastre
