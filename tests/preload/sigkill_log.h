/* What a target that is about to be killed writes down about itself, in a file that it shares with the test. C and C++.
 * Each thread writes its own entry before each step, as it will be after the step; so the entry is ahead of the profile
 * by at most the one step that was under way. */
#ifndef CADASTRE_TESTS_PRELOAD_SIGKILL_LOG_H_
#define CADASTRE_TESTS_PRELOAD_SIGKILL_LOG_H_

#include <stdint.h>

enum { kLogThreads = 8, kLogLargestBlock = 4096 };

struct ThreadLog {
  uint64_t tid;
  uint64_t steps;
  uint64_t live_bytes, live_blocks;
  uint64_t allocated_blocks, allocated_bytes;
  uint64_t padding[2]; /* a cache line each */
};

#endif /* CADASTRE_TESTS_PRELOAD_SIGKILL_LOG_H_ */
