// A stack that is wrong in the middle charges memory to the wrong owner and looks as plausible as a right one. So
// captured stacks are compared with a slow walk by libunwind at tens of thousands of points: code compiled in five
// ways, calls through libc, libstdc++ and zlib (stripped, without frame pointers), exceptions, signals, and points
// where a timer happened to strike.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <string>

#include "interposer/stack_capture.h"
#include "interposer/stack_unwind.h"
#include "tests/support/catch.h"
#include "tests/unit/interposer/probe_paths.h"
#include "tests/unit/interposer/stack_oracle.h"

namespace {

// argv[0] is of no use under ctest; the build tells where libcadastre-unwind.so lies.
void StartOnce() {
  static bool started = false;
  if (started) return;
  started = true;
  StartOracle(CADASTRE_PRIVATE_UNWIND);
  NoteThreadStack();
}

void ResetCounts() {
  oracle_counts.compared = oracle_counts.different = oracle_counts.same = oracle_counts.frames = 0;
  oracle_counts.known = oracle_counts.in_tree = oracle_counts.exact_frames = oracle_counts.cut = oracle_counts.deepest =
      0;
}

void RequireEqual(const char* what, uint64_t at_least) {
  PrintOracleCounts(what);
  CHECK(oracle_counts.compared >= at_least);
  CHECK(oracle_counts.different * 1000 <= oracle_counts.compared);  // 99.9 %
  CHECK(oracle_counts.cut * 1000 <= oracle_counts.compared);        // all of this code has unwind tables
}

volatile sig_atomic_t g_struck;
void OnTimer(int) {
  Probe();
  g_struck = g_struck + 1;
}

// Work whose every instruction may be hit: libc with its PLT, the allocator, and our own prologues and epilogues.
__attribute__((noinline)) unsigned Work(unsigned seed) {
  char text[200];
  unsigned sum = seed;
  for (int i = 0; i < 50; i++) {
    snprintf(text, sizeof(text), "%d %g %s", i, i * 0.37, "some text to format");
    sum += static_cast<unsigned>(strlen(text)) + static_cast<unsigned>(strtol(text, nullptr, 10));
    std::string copy(text);
    copy += text;
    sum += static_cast<unsigned>(copy.size());
    void* block = malloc(100 + sum % 1000);
    memset(block, 1, 100);
    free(block);
    sum = sum * 1103515245 + static_cast<unsigned>(rand());
  }
  return sum;
}

}  // namespace

TEST_CASE("The private copy of libunwind loads and offers what is needed") {
  StartOnce();
  REQUIRE(cadastre::StackUnwindPrepare());
}

TEST_CASE("Stacks equal libunwind's in code without frame pointers") {
  StartOnce();
  ResetCounts();
  probe_paths_omit::RunAll(60);
  RequireEqual("-O2 -fomit-frame-pointer", 10000);
}
TEST_CASE("Stacks equal libunwind's in code with frame pointers") {
  StartOnce();
  ResetCounts();
  probe_paths_keep::RunAll(60);
  RequireEqual("-O2 -fno-omit-frame-pointer", 10000);
}
TEST_CASE("Stacks equal libunwind's in unoptimised code") {
  StartOnce();
  ResetCounts();
  probe_paths_o0::RunAll(60);
  RequireEqual("-O0", 10000);
}
TEST_CASE("Stacks equal libunwind's in code optimised for size") {
  StartOnce();
  ResetCounts();
  probe_paths_os::RunAll(60);
  RequireEqual("-Os", 10000);
}
TEST_CASE("Stacks equal libunwind's in code with realigned stacks") {
  StartOnce();
  ResetCounts();
  probe_paths_avx::RunAll(60);
  RequireEqual("-O3 -mpreferred-stack-boundary=6", 10000);
}

TEST_CASE("Stacks equal libunwind's wherever a timer strikes") {
  StartOnce();
  ResetCounts();
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = OnTimer;
  action.sa_flags = SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often = {{0, 200}, {0, 200}}, never = {};
  unsigned sum = 1;
  g_struck = 0;
  setitimer(ITIMER_PROF, &often, nullptr);
  // The kernel's tick limits the timer to a few hundred strikes a second of processor time.
  const int wanted = getenv("CADASTRE_SMOKE") ? 200 : 2000;
  while (g_struck < wanted) sum = Work(sum);
  setitimer(ITIMER_PROF, &never, nullptr);
  signal(SIGPROF, SIG_IGN);
  CHECK(sum != 0);
  RequireEqual("timer", static_cast<uint64_t>(wanted) * 9 / 10);
  CHECK(oracle_counts.exact_frames >= oracle_counts.compared);
}
