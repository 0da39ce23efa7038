// Which raw system call of the interposer fails: what CADASTRE_FAULT says, for the preload that the fault tests are run
// with.
//
//   CADASTRE_FAULT=NUMBER:NTH:ERRNO:MARKER     the NTH call of system call NUMBER in this process is not made and gives
//   -ERRNO CADASTRE_FAULT=NUMBER:NTH+:ERRNO:MARKER    it and all later ones
//
// MARKER is created when a call has failed: a plan whose call never comes must not pass for a survived fault.
// The plan is read from /proc/self/environ, because libc's environ is not set before other libraries' constructors run.
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace {

struct Plan {
  long number, nth, error;
  bool and_later;
  char marker[512];
};

constexpr char kVariable[] = "CADASTRE_FAULT=";
char text[256 * 1024];
Plan plan;
int is_read;  // 0 not yet, 1 by somebody right now, 2 done
long calls;

// Not strtol: the first call may come while the loader relocates, when libc has no locale yet.
long Number(const char** at) {
  long value = 0;
  for (; **at >= '0' && **at <= '9'; (*at)++) value = value * 10 + (**at - '0');
  return value;
}

void Parse(const char* at) {
  plan.number = Number(&at);
  if (*at++ != ':') return;
  const long nth = Number(&at);
  plan.and_later = *at == '+';
  at += plan.and_later;
  if (*at++ != ':') return;
  plan.error = Number(&at);
  if (*at++ != ':') return;
  strncpy(plan.marker, at, sizeof(plan.marker) - 1);
  plan.nth = nth;
}

void ReadPlan() {
  const int fd = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  size_t used = 0;
  for (ssize_t got; (got = read(fd, text + used, sizeof(text) - 1 - used)) > 0;) used += static_cast<size_t>(got);
  close(fd);
  for (const char* entry = text; entry < text + used; entry += strlen(entry) + 1) {
    if (strncmp(entry, kVariable, sizeof(kVariable) - 1) == 0) Parse(entry + sizeof(kVariable) - 1);
  }
}

}  // namespace

namespace cadastre {

// The negative error that this call is to give, 0 to make it. Declared in interposer/raw_syscall.h.
long PlannedFault(long number) {
  int expected = 0;
  if (__atomic_compare_exchange_n(&is_read, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    const int saved = errno;
    ReadPlan();
    errno = saved;
    __atomic_store_n(&is_read, 2, __ATOMIC_RELEASE);
  } else if (expected != 2) {
    return 0;
  }
  if (plan.nth == 0 || number != plan.number) return 0;
  const long call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (call < plan.nth || (call > plan.nth && !plan.and_later)) return 0;
  if (call == plan.nth) {
    const int saved = errno;
    const int fd = open(plan.marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    errno = saved;
  }
  return -plan.error;
}

}  // namespace cadastre
