// A library that makes blocks, built twice: SITE is the function's name, which says which build made a block.
#include <stdlib.h>

__attribute__((noinline)) void* SITE(void) {
  void* volatile block = malloc(1409);
  return block;
}
__attribute__((visibility("default"))) void* make(void) { return SITE(); }
__attribute__((constructor)) static void start(void) { free(malloc(64)); }
