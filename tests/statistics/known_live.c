// A target that holds exactly what its arguments say and nothing else: "known_live COUNT:SIZE...".
// Each held block has a twin of the same size that is freed, so allocated bytes are twice the live ones. The order is
// mixed with a fixed generator. In C and without stdio: a C++ runtime or a stream buffer would be live memory that
// nobody stated. The blocks are not touched, so even gigabytes cost no memory.
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { kMaxSizes = 32, kTwins = 64 };

static void* volatile sink;
static void* twins[kTwins];

__attribute__((noinline)) void hold(size_t size) {
  sink = malloc(size);
  if (sink == NULL) _exit(3);
}

__attribute__((noinline)) void pass(size_t size, uint64_t step) {
  free(twins[step % kTwins]);
  twins[step % kTwins] = malloc(size);
  if (twins[step % kTwins] == NULL) _exit(3);
}

int main(int argc, char** argv) {
  uint64_t left[kMaxSizes], sizes[kMaxSizes], total = 0;
  int kinds = argc - 1;
  if (kinds < 1 || kinds > kMaxSizes) return 2;
  for (int i = 0; i < kinds; i++) {
    char* end;
    left[i] = strtoull(argv[i + 1], &end, 10);
    if (*end != ':') return 2;
    sizes[i] = strtoull(end + 1, NULL, 10);
    total += left[i];
  }
  uint64_t random = 88172645463325252u;  // xorshift64, Marsaglia 2003
  for (uint64_t step = 0; step < total; step++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    int kind = (int)(random % (uint64_t)kinds);
    while (left[kind] == 0) kind = (kind + 1) % kinds;
    left[kind]--;
    hold(sizes[kind]);
    pass(sizes[kind], step);
  }
  for (int i = 0; i < kTwins; i++) free(twins[i]);
  return 0;
}
