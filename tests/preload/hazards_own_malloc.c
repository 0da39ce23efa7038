// A program with a malloc and a free of its own, and nothing else of the family: calloc, strdup and malloc_usable_size are libc's. And an
// ifunc resolver that allocates before anything is relocated.
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OWN_MALLOC
static char heap[1 << 20] __attribute__((aligned(16)));
static size_t used;
void* malloc(size_t bytes) {
  const size_t rounded = (bytes + 31) / 16 * 16, at = __atomic_fetch_add(&used, rounded, __ATOMIC_RELAXED);
  return at + rounded <= sizeof(heap) ? heap + at + 16 : NULL;
}
void free(void* block) {}
#endif

#ifdef IFUNC
extern void* malloc(size_t) __attribute__((weak));
static int answer_one(void) { return 1; }
static void* early;
static int (*resolve_answer(void))(void) {
  early = malloc(100);
  return answer_one;
}
int answer(void) __attribute__((ifunc("resolve_answer")));
#else
static int answer(void) { return 1; }
#endif

int main(void) {
  char* blocks[100];
  for (int i = 0; i < 100; i++) blocks[i] = malloc(100 + (size_t)i);
  for (int i = 0; i < 100; i++) memset(blocks[i], i, 100);
  char* copy = strdup("a string of libc's");
  void* zeroed = calloc(10, 100);
  printf("%s %d %d\n", copy, answer(), ((char*)zeroed)[999]);
#ifndef OWN_MALLOC
  printf("%d\n", malloc_usable_size(blocks[5]) >= 105);
  free(copy);
#endif
  for (int i = 0; i < 100; i++) free(blocks[i]);
  return 0;
}
