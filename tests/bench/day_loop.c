// What a service does all day, told to whoever measures it: threads that allocate blocks of all sizes at many places and free them after a
// while, a live set of fixed size, some mappings. day_loop MILLIONS THREADS: allocations in all; prints "nanoseconds" of processor time for each
// allocation and free, one number for each tenth of the run.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "tests/support/call_paths.h"

enum { kLive = 2000, kTenths = 10, kMostThreads = 16 };

static long allocations;  // of one thread
static double cost[kMostThreads][kTenths];

static double cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void* serve(void* argument) {
  const long thread = (long)argument;
  uint64_t random = 88172645463325252ull + (uint64_t)thread;
  void** live = calloc(kLive, sizeof(void*));
  for (int tenth = 0; tenth < kTenths; tenth++) {
    const double begin = cpu_ns();
    for (long i = 0; i < allocations / kTenths; i++) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      const uint32_t at = (uint32_t)(random >> 20) % kLive;
      free(live[at]);
      live[at] = step((uint32_t)random & 255, 8, 16 + (size_t)(random >> 32) % 1000);
      if (i % 10000 == 0) munmap(mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 65536);
    }
    cost[thread][tenth] = (cpu_ns() - begin) / ((double)allocations / kTenths);
  }
  for (int i = 0; i < kLive; i++) free(live[i]);
  free(live);
  return NULL;
}

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const long threads = atol(arguments[2]);
  if (threads < 1 || threads > kMostThreads) return 2;
  allocations = (long)(atof(arguments[1]) * 1e6) / threads;
  pthread_t running[kMostThreads];
  for (long t = 0; t < threads; t++) pthread_create(&running[t], NULL, serve, (void*)t);
  for (long t = 0; t < threads; t++) pthread_join(running[t], NULL);
  for (int tenth = 0; tenth < kTenths; tenth++) {
    double sum = 0;
    for (long t = 0; t < threads; t++) sum += cost[t][tenth];
    printf("%.1f\n", sum / (double)threads);
  }
  return 0;
}
