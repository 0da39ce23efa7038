// One way to get at a preloaded profiler for each name in the table at the end: hazards_target NAME [ARGUMENT...].
//
// Each allocates a hundred blocks, does its worst, and allocates a hundred more; what it says of them (lines ALLOC, as the programs in
// tests/programs do) must be what the profile shows, and all it prints must be the same bare. hazards_test.py runs them and
// looks at what else must hold.
#include "hazards_target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* kept[16 * kBlocks];
static int kept_count;
void keep(void* block) {
  if (block == NULL) abort();
  memset(block, 1, 8);
  kept[kept_count++] = block;
}
void free_kept(void) {
  for (int i = 0; i < kept_count; i++) free(kept[i]);
  kept_count = 0;
}

NI void site_before(void) {
  for (int i = 0; i < kBlocks; i++) keep(malloc(703));
}
NI void site_after(void) {
  for (int i = 0; i < kBlocks; i++) keep(malloc(907));
}
NI void* site_hazard(void) {
  void* volatile block = malloc(1201);
  return block;
}
NI void site_volume(void) {
  for (int i = 0; i < 3000; i++) free(malloc(10007));
}
void churn(int count) {
  for (int i = 0; i < count; i++) {
    void* block = malloc(50 + (size_t)i % 5000);
    block = realloc(block, 6000);
    free(block);
  }
}
void* churn_thread(void* argument) {
  churn(2000);
  return argument;
}
void fail(const char* what) {
  printf("FAIL %s: %s\n", what, strerror(errno));
  exit(1);
}

static void nothing(char** arguments) {
  churn(5000);
  site_volume();
}

static const struct {
  const char* name;
  void (*run)(char**);
} cases[] = {{"thread_destructors", thread_destructors},
             {"fibers", fibers},
             {"deep_recursion", deep_recursion},
             {"profiling_timer", profiling_timer},
             {"vdso_interrupted", vdso_interrupted},
             {"registered_frames", registered_frames},
             {"thread_names", thread_names},
             {"exit_from_a_thread", exit_from_a_thread},
             {"children", children},
             {"daemonise", daemonise},
             {"environment_kept", environment_kept},
             {"drop_privileges", drop_privileges},
             {"address_space", address_space},
             {"no_descriptors", no_descriptors},
             {"file_harmed", file_harmed},
             {"file_cut_in_a_slow_call", file_cut_in_a_slow_call},
             {"failing_unmap", failing_unmap},
             {"raw_unmap", raw_unmap},
             {"library_replaced", library_replaced},
             {"library_unloaded", library_unloaded},
             {"library_storm", library_storm},
             {"odd_paths", odd_paths},
             {"generated_code", generated_code},
             {"nothing", nothing}};

int main(int count, char** arguments) {
  static char line[BUFSIZ];
  setvbuf(stdout, line, _IOLBF, sizeof(line));  // nothing is left in it for a child to write again
  if (count < 2) return 2;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(arguments[1], cases[i].name) != 0) continue;
    site_before();
    cases[i].run(arguments + 2);
    site_after();
    if (strncmp(arguments[1], "file_", 5) != 0) {
      printf("ALLOC site_before count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 703, kBlocks, kBlocks * 703);
      printf("ALLOC site_after count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 907, kBlocks, kBlocks * 907);
    }
    return 0;
  }
  return 2;
}
