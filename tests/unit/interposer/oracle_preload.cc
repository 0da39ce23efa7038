// A preload that compares stacks at every Nth allocation of a real program: libraries, interpreters and compilers as
// distributions ship them, stripped and without frame pointers. Test only: unlike the product it may lock and make
// system calls.
//
// Environment: CADASTRE_ORACLE_EVERY (default 50) compares each Nth allocation; CADASTRE_ORACLE_OUT gets one line per
// process, appended: "name compared different cut frames".
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/allocation_hooks.h"
#include "tests/unit/interposer/stack_oracle.h"

namespace {

std::atomic<bool> g_started{false};
std::atomic<uint64_t> g_allocations{0};
uint64_t g_every = 50;
__thread int t_inside __attribute__((tls_model("initial-exec")));

}  // namespace

void oracle_allocation(const cadastre::EntryRegisters* registers) {
  if (!g_started.load(std::memory_order_relaxed) || t_inside) return;
  if (g_allocations.fetch_add(1, std::memory_order_relaxed) % g_every != 0) return;
  t_inside = 1;
  ProbeRegisters(registers);
  t_inside = 0;
}

namespace {

__attribute__((constructor)) void Start() {
  if (const char* every = getenv("CADASTRE_ORACLE_EVERY")) g_every = strtoull(every, nullptr, 10);
  if (g_every == 0) g_every = 1;
  t_inside = 1;
  StartOracle(nullptr);
  // The main thread's only: asking inside a hook deadlocks where pthread_getattr_np itself allocates. Other threads'
  // stacks are probed.
  NoteThreadStack();
  t_inside = 0;
  g_started = true;
}

__attribute__((destructor)) void Report() {
  g_started = false;
  const char* path = getenv("CADASTRE_ORACLE_OUT");
  int file = path != nullptr ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0) return;
  char line[200];
  int bytes =
      snprintf(line, sizeof(line), "%s %lu %lu %lu %lu\n", program_invocation_short_name, oracle_counts.compared.load(),
               oracle_counts.different.load(), oracle_counts.cut.load(), oracle_counts.frames.load());
  if (write(file, line, static_cast<size_t>(bytes)) < 0) unlink(path);
  close(file);
}

}  // namespace
