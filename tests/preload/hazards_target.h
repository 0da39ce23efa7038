// What the cases of hazards_target share: blocks that are kept, blocks that come and go, sites with names of their own.
#ifndef CADASTRE_TESTS_PRELOAD_HAZARDS_H_
#define CADASTRE_TESTS_PRELOAD_HAZARDS_H_

#include <stddef.h>

#define NI __attribute__((noinline))

enum { kBlocks = 100 };

void keep(void* block);  // until the end
void free_kept(void);
void* site_hazard(void);      // 1,201 bytes
void site_volume(void);       // blocks that go at once, enough for a sample at 512 KiB, whatever the seed
void churn(int count);        // the same with reallocations
void* churn_thread(void*);    // 2,000 of these, as a thread
void fail(const char* what);  // says so with errno, and ends the program

// hazards_threads.c
void thread_destructors(char** arguments);
void fibers(char** arguments);
void deep_recursion(char** arguments);
void profiling_timer(char** arguments);
void vdso_interrupted(char** arguments);
void registered_frames(char** arguments);
void thread_names(char** arguments);
void exit_from_a_thread(char** arguments);
// hazards_children.c
void children(char** arguments);
void daemonise(char** arguments);
void environment_kept(char** arguments);
// hazards_resources.c
void drop_privileges(char** arguments);
void address_space(char** arguments);
void no_descriptors(char** arguments);
void file_harmed(char** arguments);
void file_cut_in_a_slow_call(char** arguments);
void failing_unmap(char** arguments);
void raw_unmap(char** arguments);
void library_replaced(char** arguments);
void library_unloaded(char** arguments);
void library_storm(char** arguments);
void odd_paths(char** arguments);
void generated_code(char** arguments);

#endif  // CADASTRE_TESTS_PRELOAD_HAZARDS_H_
