/* mmap and munmap of one range of 64 KiB, N thousand times: what the mapping hooks add to a pair.
 * mapping_loop THOUSANDS -> prints nanoseconds per pair. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  const long pairs = atol(argv[1]) * 1000, bytes = 64 * 1024;
  double start = now();
  for (long i = 0; i < pairs; i++) {
    char *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return 3;
    *(volatile char *)mapping = 1; /* a mapping that nobody touches is none */
    if (munmap(mapping, bytes) != 0) return 3;
  }
  printf("%.1f\n", (now() - start) / (double)pairs);
  return 0;
}
