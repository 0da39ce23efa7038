// A program in C that loads the library named by its argument and lets it call every allocation entry point there is.
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** arguments) {
  void* library = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*run)(void) = (int (*)(void))dlsym(library, "run_entries");
  return run != NULL ? run() : 3;
}
