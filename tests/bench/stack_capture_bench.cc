// What one capture costs, for native stacks of 20 and 35 frames whose pcs are known (warm) and for pcs met for the
// first time. Prints nanoseconds, the median of several rounds. --smoke: a few repetitions, to see that it runs.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <vector>

#include "interposer/library_map.h"
#include "interposer/stack_capture.h"
#include "tests/unit/interposer/stack_oracle.h"

namespace {

int g_repeats = 2000;
int g_rounds = 101;
cadastre::StackBounds g_bounds;
double g_median_ns;
uint32_t g_frames;

double NowNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);  // what others do on the machine does not count
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void Measure(const cadastre::EntryRegisters* registers) {
  static uint64_t frames[cadastre::kMaxFrames];
  uint32_t flags = 0;
  std::vector<double> rounds;
  for (int round = 0; round < g_rounds; round++) {
    double start = NowNs();
    for (int i = 0; i < g_repeats; i++) {
      g_frames = cadastre::CaptureStack(*registers, g_bounds, frames, cadastre::kMaxFrames, &flags);
    }
    rounds.push_back((NowNs() - start) / g_repeats);
  }
  std::sort(rounds.begin(), rounds.end());
  g_median_ns = rounds[rounds.size() / 2];
}

// A different function at each level, so that each frame has a pc of its own, as in real stacks.
template <int kDepth>
__attribute__((noinline)) int Level() {
  int result = 0;
  if constexpr (kDepth == 0) {
    Probe();
  } else {
    result = Level<kDepth - 1>();
  }
  asm volatile("" : "+r"(result));
  return result + 1;
}

template <int kDepth>
void Run() {
  g_bounds = ThisThreadStack();
  Level<kDepth>();
  printf("stack_capture: %2u frames, warm, known stack   %7.0f ns (%.1f per frame)\n", g_frames, g_median_ns,
         g_median_ns / g_frames);
  g_bounds = {0, 0};
  Level<kDepth>();
  printf("stack_capture: %2u frames, warm, unknown stack %7.0f ns (probed)\n", g_frames, g_median_ns);
}

template <int kDepth>
void RunCold() {
  g_bounds = ThisThreadStack();
  const int repeats = g_repeats, rounds = g_rounds;
  g_repeats = g_rounds = 1;
  Level<kDepth>();
  printf("stack_capture: %2u frames, each pc new         %7.0f ns\n", g_frames, g_median_ns);
  g_repeats = repeats;
  g_rounds = rounds;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "--smoke") == 0) {
    g_repeats = 100;
    g_rounds = 3;
  }
  StartOracle(CADASTRE_PRIVATE_UNWIND);
  SetProbe(Measure);
  RunCold<52>();
  Run<13>();
  Run<28>();
  return 0;
}
