/* The least that a preloaded library can do: malloc and free, handed on. What anything preloaded costs at least. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);

__attribute__((constructor)) static void find(void) {
  next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
  next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

void *malloc(size_t bytes) {
  if (next_malloc == NULL) find();
  return next_malloc(bytes);
}

void free(void *block) {
  if (next_free == NULL) find();
  next_free(block);
}
