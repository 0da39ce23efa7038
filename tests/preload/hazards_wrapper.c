// Preloaded wrappers that look at a part of the malloc family and leave the rest to libc: MALLOC alone, or MALLOC and FREE.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *(*next_malloc)(size_t);
void *malloc(size_t bytes) {
  if (next_malloc == NULL) next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
  return next_malloc(bytes);
}

#ifdef FREE
static void (*next_free)(void *);
void free(void *block) {
  if (next_free == NULL) next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
  next_free(block);
}
#endif
