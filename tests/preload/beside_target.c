// A program with another allocator in front that asks libc's handle for malloc, as Java's foreign linker does. Prints where what it
// found lies and what it did with it; the same bare and under the preload.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* libc;
static void* find(const char* name) { return dlsym(libc, name); }

__attribute__((noinline)) void leak_of_libc(void* (*allocate)(size_t), void* (*clear)(size_t, size_t)) {
  for (int i = 0; i < 100; i++) memset(allocate(5000), 1, 5000);
  for (int i = 0; i < 100; i++) memset(clear(10, 500), 1, 5000);
}

__attribute__((noinline)) void grown_in_libc(void* (*change)(void*, size_t)) {
  for (int i = 0; i < 10; i++) change(change(NULL, 1000), 20000);
}

__attribute__((noinline)) void aligned_in_libc(int (*align)(void**, size_t, size_t), void* (*align_too)(size_t, size_t)) {
  void* block;
  for (int i = 0; i < 10; i++) {
    if (align(&block, 4096, 3000) != 0 || (uintptr_t)block % 4096 != 0) puts("not aligned");
    block = align_too(64, 6400);
    if ((uintptr_t)block % 64 != 0) puts("not aligned");
  }
}

__attribute__((noinline)) void given_back(void* (*allocate)(size_t), void (*release)(void*)) {
  for (int i = 0; i < 1000; i++) release(allocate(7000));
}

int main(void) {
  libc = dlopen("libc.so.6", RTLD_LAZY);
  void* (*allocate)(size_t) = (void* (*)(size_t))find("malloc");
  void (*release)(void*) = (void (*)(void*))find("free");
  void* (*change)(void*, size_t) = (void* (*)(void*, size_t))find("realloc");
  leak_of_libc(allocate, (void* (*)(size_t, size_t))find("calloc"));
  grown_in_libc(change);
  aligned_in_libc((int (*)(void**, size_t, size_t))find("posix_memalign"), (void* (*)(size_t, size_t))find("aligned_alloc"));
  given_back(allocate, release);
  void* kept = allocate(100);
  void* gone = change(kept, 0);
  printf("realloc to nothing gives %s\n", gone == NULL ? "nothing" : "a block");
  free(malloc(100));
  puts("done");
  return 0;
}
