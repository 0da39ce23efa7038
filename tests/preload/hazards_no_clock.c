// The time-stamp counter is taken away, as seccomp's strict mode and PR_SET_TSC do, and the program goes on allocating.
// hazards_no_clock strict|strict-by-number|counter|counter-by-number
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NI __attribute__((noinline))
static void *blocks[200];

NI void site_before(void) {
  for (int i = 0; i < 100; i++) blocks[i] = malloc(5003);
}
NI void site_after(void) {
  for (int i = 100; i < 200; i++) blocks[i] = malloc(7001);
  for (int i = 100; i < 150; i++) free(blocks[i]);
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  const char *how = arguments[1];
  mallopt(M_TOP_PAD, 4 << 20);  // strict mode leaves no way to ask for more
  site_before();
  long error = 0;
  if (strcmp(how, "strict") == 0) error = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
  if (strcmp(how, "strict-by-number") == 0) error = syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
  if (strcmp(how, "counter") == 0) error = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  if (strcmp(how, "counter-by-number") == 0) error = syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0);
  if (error != 0) return 77;
  site_after();
  static const char kText[] =
      "ALLOC site_before count=100 bytes=500300 live=100 livebytes=500300\n"
      "ALLOC site_after count=100 bytes=700100 live=50 livebytes=350050\n";
  if (write(1, kText, sizeof(kText) - 1) < 0) return 1;
  syscall(SYS_exit, 5);  // all that strict mode leaves
  return 0;
}
