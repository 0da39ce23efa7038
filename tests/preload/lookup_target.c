// Looks malloc up in every way and says what it finds; the same bare and under the preload. Arguments: the library with a malloc of its
// own (private_malloc.c), the library that is half a JVM (unknown_jvm.c).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* (*Malloc)(size_t);
typedef void (*Free)(void*);

__attribute__((noinline)) void leak_by_handle(Malloc allocate) {
  for (int i = 0; i < 100; i++) memset(allocate(10000), 1, 10000);
}
__attribute__((noinline)) void leak_by_next(Malloc allocate) {
  for (int i = 0; i < 50; i++) memset(allocate(10000), 1, 10000);
}

static void* find(void* handle, const char* name) { return dlsym(handle, name); }

int main(int count, char** arguments) {
  if (count != 3) return 2;
  void* c = dlopen("libc.so.6", RTLD_LAZY);
  void* m = dlopen("libm.so.6", RTLD_LAZY);
  Malloc by_handle = (Malloc)find(c, "malloc");
  Free free_by_handle = (Free)find(c, "free");
  printf("libc's malloc is %s\n", by_handle == (Malloc)find(RTLD_DEFAULT, "malloc") ? "everybody's" : "another");
  printf("libm's malloc is %s\n", find(m, "malloc") == (void*)by_handle ? "the same" : "another");
  free_by_handle(by_handle(100));
  free(by_handle(100));
  free_by_handle(malloc(100));
  leak_by_handle(by_handle);

  Malloc next = (Malloc)dlsym(RTLD_NEXT, "malloc");
  printf("the next malloc %s\n", next != NULL ? "is there" : "is missing");
  leak_by_next(next);

  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return 3;
  Malloc private_malloc = (Malloc)find(library, "malloc");
  Free private_free = (Free)find(library, "free");
  long (*served)(void) = (long (*)(void))find(library, "private_served");
  private_free(private_malloc(100));
  printf("a private malloc served %ld, the one behind it is %s\n", served(), served() == 1 ? "libc's" : "lost");

  dlerror();
  void* nothing = find(c, "no_such_function");
  const char* error = dlerror();
  printf("%s: %s\n", nothing == NULL ? "nothing" : "something", error != NULL && strstr(error, "no_such_function") ? "named" : "not named");
  nothing = find(c, "mallocator");
  error = dlerror();
  printf("%s: %s\n", nothing == NULL ? "nothing" : "something", error != NULL && strstr(error, "mallocator") ? "named" : "not named");

  void* jvm = dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL);
  void* (*start_vm)(void) = jvm != NULL ? (void* (*)(void))find(jvm, "start_vm") : NULL;
  printf("half a JVM %s\n", start_vm != NULL && start_vm() != NULL ? "runs" : "is missing");
  return 0;
}
