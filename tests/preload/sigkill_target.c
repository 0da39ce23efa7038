/* Eight threads that malloc, realloc and free for ever and write down what they hold: "sigkill_target LOG". The log file is as large as
 * kLogThreads entries. Each thread writes one byte to standard output when it is well under way: that is the test's signal to aim. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/preload/sigkill_log.h"

enum { kSlots = 256, kWarm = 200 };

static struct ThreadLog* logs;

/* Three sites, so that the counters of several records are in flight when the end comes. */
__attribute__((noinline)) static void* site_malloc(size_t size) { return malloc(size); }
__attribute__((noinline)) static void* site_calloc(size_t size) { return calloc(1, size); }
__attribute__((noinline)) static void* site_realloc(void* block, size_t size) { return realloc(block, size); }

static void* work(void* argument) {
  struct ThreadLog* log = argument;
  void* blocks[kSlots] = {0};
  uint64_t sizes[kSlots] = {0};
  uint64_t random = 0x9e3779b97f4a7c15u * (uint64_t)(1 + (log - logs));
  log->tid = (uint64_t)syscall(SYS_gettid);
  for (;;) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    unsigned slot = random % kSlots;
    uint64_t size = 1 + (random >> 20) % kLogLargestBlock;
    /* The compiler must not move the entry behind the step; the processor's order does not matter to a process that is killed. */
    if (blocks[slot] == NULL) {
      log->live_bytes += size;
      log->live_blocks++;
      log->allocated_bytes += size;
      log->allocated_blocks++;
      atomic_signal_fence(memory_order_seq_cst);
      blocks[slot] = random >> 63 ? site_malloc(size) : site_calloc(size);
      sizes[slot] = size;
    } else if (random >> 62 == 0) {
      log->live_bytes += size - sizes[slot];
      log->allocated_bytes += size;
      log->allocated_blocks++;
      atomic_signal_fence(memory_order_seq_cst);
      blocks[slot] = site_realloc(blocks[slot], size);
      sizes[slot] = size;
    } else {
      log->live_bytes -= sizes[slot];
      log->live_blocks--;
      atomic_signal_fence(memory_order_seq_cst);
      free(blocks[slot]);
      blocks[slot] = NULL;
    }
    atomic_signal_fence(memory_order_seq_cst);
    if (++log->steps == kWarm && write(STDOUT_FILENO, "r", 1) != 1) _exit(4);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int file = open(argv[1], O_RDWR | O_CLOEXEC);
  logs = mmap(NULL, kLogThreads * sizeof(struct ThreadLog), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || logs == MAP_FAILED) return 3;
  pthread_t threads[kLogThreads];
  for (int i = 0; i < kLogThreads; i++) {
    if (pthread_create(&threads[i], NULL, work, &logs[i]) != 0) return 3;
  }
  pthread_join(threads[0], NULL);
  return 0;
}
