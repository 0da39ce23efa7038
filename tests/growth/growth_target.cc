// A program with a leak, a cache that fills up and memory that stays: a step for each line of its input, "ok" after it.
// The leak goes with the clock, 8 MiB a second, so that snapshots at any times lie on a line; the cache takes 6 MiB a
// step and holds 12; 20 MiB, or as many as the first argument says, are there from the beginning.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <vector>

namespace {
constexpr size_t kMiB = 1 << 20, kBlock = 4096;
void* volatile sink;

double Now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}
}  // namespace

namespace leaky {
void Lose(size_t bytes) {
  for (size_t lost = 0; lost < bytes; lost += kBlock) sink = malloc(kBlock);
}
}  // namespace leaky

namespace cache {
void Fill(size_t bytes) {
  for (size_t held = 0; held < bytes; held += kBlock) sink = malloc(kBlock);
}
}  // namespace cache

namespace level {
void Hold(size_t bytes) {
  for (size_t held = 0; held < bytes; held += kBlock) sink = malloc(kBlock);
}
}  // namespace level

int main(int argc, char** argv) {
  level::Hold((argc > 1 ? strtoul(argv[1], nullptr, 10) : 20) * kMiB);
  const double began = Now();
  size_t lost = 0, cached = 0;
  char line[16];
  while (fgets(line, sizeof(line), stdin) != nullptr) {
    const auto due = static_cast<size_t>((Now() - began) * 8 * kMiB);
    if (due > lost) leaky::Lose(due - lost);
    lost = due;
    if (cached < 12 * kMiB) {
      cache::Fill(6 * kMiB);
      cached += 6 * kMiB;
    }
    puts("ok");
    fflush(stdout);
  }
}
