// What callers do that the ABI or POSIX does not promise, and that works bare. hazards_abi CASE
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void *map(void) { return mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void map_and_unmap(void) {
  void *pages = map();
  if (pages != MAP_FAILED) munmap(pages, 8192);
}

// Calls with a stack that is eight bytes off.
static void *call(void *function, size_t argument) {
  void *result;
  __asm__ volatile(
      "movq %%rsp, %%rbx; andq $-16, %%rsp; subq $8, %%rsp; call *%1; movq %%rbx, %%rsp"
      : "=a"(result)
      : "r"(function), "D"(argument)
      : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
        "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  return result;
}

static void misaligned(void) {
  for (size_t i = 0; i < 30000; i++) {
    char *block = call((void *)malloc, 100 + i % 4000);
    *(volatile char *)block = 1;
    call((void *)free, (size_t)block);
  }
}

// A program that asks which exceptions its arithmetic has raised, rounds in its own way, and then has them trap.
static void floating_point(void) {
  fesetround(FE_UPWARD);
  feclearexcept(FE_ALL_EXCEPT);
  for (int turn = 0; turn < 2; turn++) {
    for (size_t i = 0; i < 20000; i++) {
      void *volatile block = malloc(1000 + i % 7000);
      free(block);
    }
    printf("raised %x rounding %x\n", (unsigned)fetestexcept(FE_ALL_EXCEPT), (unsigned)fegetround());
    feenableexcept(FE_INEXACT | FE_UNDERFLOW | FE_OVERFLOW | FE_DIVBYZERO | FE_INVALID);
  }
}

static void *map_for_ever(void *unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (;;) map_and_unmap();
  return unused;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// Threads that are cancelled wherever they are, and what others map afterwards.
static void cancelled(void) {
  for (int turn = 0; turn < 200; turn++) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, map_for_ever, NULL);
    usleep(1000 + turn * 7 % 1000);
    for (int i = 0; i < 2; i++) pthread_cancel(threads[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  }
  const double start = now();
  for (int i = 0; i < 1000; i++) map_and_unmap();
  puts(now() - start < 5 ? "fast" : "FAIL: slow");
}

static sigjmp_buf back;
static volatile int jumps, is_over;
static volatile long pairs;
static void jump(int signal) {
  (void)signal;
  jumps = jumps + 1;
  siglongjmp(back, 1);
}
static void *map_beside(void *unused) {
  while (!is_over) {
    map_and_unmap();
    pairs = pairs + 1;
  }
  return unused;
}

// A thread that leaves mapping calls by siglongjmp and does not map again, beside one that goes on.
static void left(void) {
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  pthread_t other;
  pthread_create(&other, NULL, map_beside, NULL);
  signal(SIGALRM, jump);
  const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
  if (sigsetjmp(back, 1) == 0) setitimer(ITIMER_REAL, &often, NULL);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  while (jumps < 200) map_and_unmap();
  setitimer(ITIMER_REAL, &never, NULL);
  const long before = pairs;
  const double start = now();
  while (pairs - before < 1000 && now() - start < 20) usleep(1000);
  puts(pairs - before >= 1000 ? "goes on" : "FAIL: stands");
  is_over = 1;
  pthread_join(other, NULL);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  if (strcmp(argv[1], "misaligned") == 0) misaligned();
  if (strcmp(argv[1], "floating_point") == 0) floating_point();
  if (strcmp(argv[1], "cancelled") == 0) cancelled();
  if (strcmp(argv[1], "left") == 0) left();
  puts("end");
  return 0;
}
