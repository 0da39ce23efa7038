// A host in C, without a C++ runtime, that loads C++ plug-ins: plugin_host HOW LIBRARY..., HOW being local, global, deep (RTLD_DEEPBIND),
// storm (loads and drops each of them many times), namespace (dlmopen). Says what was there before and afterwards.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* (*Run)(void*);

__attribute__((noinline)) void* site_host(size_t bytes) { return malloc(bytes); }

static void* load(const char* how, const char* path) {
  if (strcmp(how, "namespace") == 0) return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
  int flags = RTLD_NOW;
  if (strcmp(how, "global") == 0) flags |= RTLD_GLOBAL;
  if (strcmp(how, "deep") == 0) flags |= RTLD_DEEPBIND;
  void* library = dlopen(path, flags);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  return library;
}

int main(int count, char** arguments) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("operator new before: %s\n", dlsym(RTLD_DEFAULT, "_Znwm") != NULL ? "there" : "missing");
  const char* how = arguments[1];
  const int rounds = strcmp(how, "storm") == 0 ? 200 : 1;
  const int is_foreign = strcmp(how, "namespace") == 0;  // its libc is another: blocks must not change hands
  for (int round = 0; round < rounds; round++) {
    for (int i = 2; i < count; i++) {
      void* library = load(how, arguments[i]);
      Run run = library != NULL ? (Run)dlsym(library, "run_plugin") : NULL;
      if (run == NULL) return 3;
      if (rounds == 1) {
        void* block = run(is_foreign ? NULL : site_host(100));
        if (!is_foreign) free(block);
      }
      if (rounds > 1) dlclose(library);
    }
  }
  printf("operator new afterwards: %s\n", dlsym(RTLD_DEFAULT, "_Znwm") != NULL ? "there" : "missing");
  if (!is_foreign && rounds == 1 && strcmp(how, "deep") != 0)
    printf("ALLOC site_host count=%d bytes=%d live=0\n", count - 2, (count - 2) * 100);
  return 0;
}
