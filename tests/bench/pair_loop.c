/* The tightest load on a preloaded allocator: malloc and free of one small block, N million times on each of T threads.
 * pair_loop SIZE MILLIONS THREADS -> prints nanoseconds per pair (wall time of the slowest thread). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static size_t size;
static long pairs;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *run(void *result) {
  double start = now();
  for (long i = 0; i < pairs; i++) {
    void *volatile block = malloc(size);
    free(block);
  }
  *(double *)result = (now() - start) / (double)pairs;
  return NULL;
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  size = strtoul(argv[1], NULL, 10);
  pairs = (long)(atof(argv[2]) * 1e6);
  int threads = atoi(argv[3]);
  pthread_t id[64];
  double result[64], worst = 0;
  for (int i = 0; i < threads && i < 64; i++) pthread_create(&id[i], NULL, run, &result[i]);
  for (int i = 0; i < threads && i < 64; i++) {
    pthread_join(id[i], NULL);
    if (result[i] > worst) worst = result[i];
  }
  printf("%.3f\n", worst);
  return 0;
}
