// Cases of hazards_target: threads, stacks, signals.
#define _GNU_SOURCE
#include "hazards_target.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

static pthread_key_t keys[3];
static void rearm(void* value) {
  intptr_t round = (intptr_t)value;
  free(malloc(300));
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(keys[round % 3], (void*)(round + 1));
}
extern int __cxa_thread_atexit_impl(void (*)(void*), void*, void*) __attribute__((weak));
extern void* __dso_handle;
static void late(void* block) {
  free(block);
  free(site_hazard());
}
static void* with_destructors(void* argument) {
  for (int k = 0; k < 3; k++) pthread_setspecific(keys[k], (void*)1);
  if (__cxa_thread_atexit_impl != NULL) __cxa_thread_atexit_impl(late, malloc(400), &__dso_handle);
  return argument;
}
void thread_destructors(char** arguments) {
  for (int k = 0; k < 3; k++) pthread_key_create(&keys[k], rearm);
  for (int i = 0; i < 200; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, with_destructors, NULL) != 0) fail("pthread_create");
    pthread_join(thread, NULL);
  }
}

// Stacks that hold junk where a caller's frame would be, resumed on another thread than the one that began them.
enum { kFibers = 20, kFiberStack = 24 * 1024 };
static ucontext_t fiber[kFibers], back;
static void run_fiber(int which) {
  for (int i = 0; i < 3; i++) {
    keep(site_hazard());
    swapcontext(&fiber[which], &back);
  }
  for (;;) swapcontext(&fiber[which], &back);
}
static void* resume_all(void* argument) {
  for (int i = 0; i < kFibers; i++) swapcontext(&back, &fiber[i]);
  return argument;
}
void fibers(char** arguments) {
  for (int i = 0; i < kFibers; i++) {
    char* stack = mmap(NULL, kFiberStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(stack, 0xa5, kFiberStack);
    getcontext(&fiber[i]);
    fiber[i].uc_stack.ss_sp = stack;
    fiber[i].uc_stack.ss_size = kFiberStack;
    fiber[i].uc_link = NULL;
    makecontext(&fiber[i], (void (*)(void))run_fiber, 1, i);
  }
  resume_all(NULL);
  for (int round = 0; round < 2; round++) {
    pthread_t thread;
    pthread_create(&thread, NULL, resume_all, NULL);
    pthread_join(thread, NULL);
  }
  printf("ALLOC site_hazard count=%d bytes=%d live=%d livebytes=%d\n", 3 * kFibers, 3 * kFibers * 1201, 3 * kFibers, 3 * kFibers * 1201);
}

NI void* site_deep(void) { return malloc(2003); }
static NI int down(int depth) {
  volatile int here = depth;
  if (depth == 0) {
    for (int i = 0; i < kBlocks; i++) keep(site_deep());
  } else {
    here += down(depth - 1);
  }
  return here;
}
static void* go_down(void* argument) {
  down(100000);
  return argument;
}
void deep_recursion(char** arguments) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 20);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, go_down, NULL) != 0) fail("pthread_create");
  pthread_join(thread, NULL);
  printf("ALLOC site_deep count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 2003, kBlocks, kBlocks * 2003);
}

// A profiling timer whose handler maps memory (which a handler may, by number, as it may not malloc) in the middle of everything.
static volatile sig_atomic_t ticks;
static void on_tick(int number) {
  const int saved = errno;
  void* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) munmap(page, 8192);
  ticks++;
  errno = saved;
}
static void start_timer(int which, int number, void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(number, &action, NULL);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(which, &every, NULL);
}
static void stop_timer(int which) {
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(which, &never, NULL);
}
void profiling_timer(char** arguments) {
  start_timer(ITIMER_PROF, SIGPROF, on_tick);
  while (ticks < 100) {
    churn(500);
    pthread_t thread;
    pthread_create(&thread, NULL, churn_thread, NULL);
    pthread_join(thread, NULL);
  }
  stop_timer(ITIMER_PROF);
}

// A handler that interrupts the vDSO and allocates: its stack goes on through code that no file has.
static void allocate_in_handler(int number) {
  if (ticks < kBlocks) keep(site_hazard());
  ticks++;
}
void vdso_interrupted(char** arguments) {
  start_timer(ITIMER_REAL, SIGALRM, allocate_in_handler);
  struct timespec now;
  while (ticks < kBlocks) clock_gettime(CLOCK_MONOTONIC, &now);
  stop_timer(ITIMER_REAL);
  printf("ALLOC site_hazard count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 1201, kBlocks, kBlocks * 1201);
}

// Unwind tables that are registered while the program runs, as a JIT compiler does.
extern void __register_frame(void*);
extern void __deregister_frame(void*);
static struct {
  uint32_t length, id;
  uint8_t body[12];
  uint32_t fde_length, cie;
  uint64_t start, bytes;
  uint8_t fde_body[4];
  uint32_t end;
} __attribute__((packed)) frame_table = {
    .length = 16, .id = 0, .body = {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0}, .fde_length = 24, .cie = 24, .bytes = 64};
static void* register_frames(void* argument) {
  for (int i = 0; i < 2000; i++) {
    __register_frame(&frame_table);
    free(malloc(100));
    __deregister_frame(&frame_table);
  }
  return argument;
}
void registered_frames(char** arguments) {
  frame_table.start = (uint64_t)(uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, register_frames, NULL);
  churn(5000);
  pthread_join(thread, NULL);
}

void thread_names(char** arguments) {
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + 4096, 4096);
  const char* names[] = {(char*)1, NULL, pages + 4096, pages + 4093, "a name that is longer than sixteen", ""};
  memset(pages, 'x', 4096);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    char got[16];
    errno = 0;
    const int error = prctl(PR_SET_NAME, names[i], 0, 0, 0);
    const int why = errno;
    prctl(PR_GET_NAME, got, 0, 0, 0);
    printf("name %zu: %d %s, now %s\n", i, error, error == 0 ? "" : strerror(why), got);
  }
  printf("pthread_setname_np: %d\n", pthread_setname_np(pthread_self(), "much too long for the kernel"));
}

static void* endless(void* argument) {
  for (;;) churn(100);
  return argument;
}
static void* exit_soon(void* argument) {
  churn(1000);
  exit(7);
}
void exit_from_a_thread(char** arguments) {
  pthread_t thread;
  for (int i = 0; i < 8; i++) pthread_create(&thread, NULL, endless, NULL);
  pthread_create(&thread, NULL, exit_soon, NULL);
  pthread_join(thread, NULL);
}
