// A leak that outgrows its profile's cap, in steps: after each it says how much it holds and waits for a byte, so that the profile can be
// read meanwhile. cap_target leak|stacks STEPS BLOCKS: "leak" from one place, "stacks" each block from a place of its own.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/call_paths.h"

static size_t held;
static NI void leak(long blocks, int many_stacks) {
  static uint32_t way;
  for (long i = 0; i < blocks; i++) {
    const size_t bytes = 100 + (size_t)i % 900;
    if (step(many_stacks ? way++ : 0, many_stacks ? 17 : 3, bytes) == NULL) abort();
    free(malloc(50));  // memory comes and goes beside the leak
    held += bytes;
  }
}

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const int many_stacks = strcmp(arguments[1], "stacks") == 0;
  for (long i = 0; i < atol(arguments[2]); i++) {
    leak(atol(arguments[3]), many_stacks);
    char line[64], answer;
    const int length = snprintf(line, sizeof(line), "%zu\n", held);
    if (write(1, line, (size_t)length) != length || read(0, &answer, 1) != 1) return 3;
  }
  return 0;
}
