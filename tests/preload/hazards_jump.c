// A handler that leaves by siglongjmp, out of whatever it has interrupted: mmap, munmap, or a profiler's hook of them. (That is legal:
// with nothing preloaded these are bare system calls.) What the thread allocates and maps afterwards is its own as before.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>

#define NI __attribute__((noinline))

static sigjmp_buf back;
static volatile sig_atomic_t armed, jumps;

static void on_alarm(int number) {
  (void)number;
  if (!armed) return;
  armed = 0;
  jumps = jumps + 1;
  siglongjmp(back, 1);
}

NI void site_after(void) {
  for (int i = 0; i < 100; i++) {
    void *volatile block = malloc(1 << 20);
    (void)block;
  }
}

NI void *site_mapped(void) { return mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
NI void *site_unmapped(void) { return mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

int main(void) {
  free(malloc(8 << 20));  // the profile is there before the first jump
  signal(SIGALRM, on_alarm);
  const struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (jumps < 2000) {
    if (sigsetjmp(back, 1) != 0) continue;
    armed = 1;
    for (int i = 0; i < 1000; i++) {
      void *mapping = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (mapping != MAP_FAILED) munmap(mapping, 65536);
    }
    armed = 0;
  }
  setitimer(ITIMER_REAL, &never, NULL);
  site_after();
  site_mapped();
  munmap(site_unmapped(), 64 << 20);
  puts("ALLOC site_after count=100 bytes=104857600 live=100 livebytes=104857600");
  return 0;
}
