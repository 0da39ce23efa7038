// A library to be preloaded beside a profiler that wraps what a profiler might call, and allocates there: what libfaketime, fabric
// libraries and other tools do.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread int inside;
static void meddle(void) {
  if (inside) return;
  inside = 1;
  free(malloc(77));
  inside = 0;
}
int clock_gettime(clockid_t clock, struct timespec* now) {
  meddle();
  return (int)syscall(SYS_clock_gettime, clock, now);
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
  meddle();
  return (void*)syscall(SYS_mmap, address, length, protection, flags, fd, offset);
}
int madvise(void* address, size_t length, int advice) {
  meddle();
  return (int)syscall(SYS_madvise, address, length, advice);
}
int sched_yield(void) {
  meddle();
  return (int)syscall(SYS_sched_yield);
}
extern char** environ;
char* getenv(const char* name) {
  meddle();
  for (char** entry = environ; entry != NULL && *entry != NULL; entry++) {
    size_t i = 0;
    while (name[i] != '\0' && (*entry)[i] == name[i]) i++;
    if (name[i] == '\0' && (*entry)[i] == '=') return *entry + i + 1;
  }
  return NULL;
}
