// Writes a title over its own arguments, as servers do, then allocates enough for a profile, and prints what the kernel says that its
// command line is, NULs as line ends.
//   hazards_title short ARGUMENT...  a title that fits
//   hazards_title long ARGUMENT...   one that ends in the environment behind the arguments
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const int is_long = strcmp(arguments[1], "long") == 0;
  char* end = arguments[count - 1] + strlen(arguments[count - 1]) + 1;
  memset(arguments[0], 0, (size_t)(end - arguments[0]));
  if (is_long) {
    memset(arguments[0], 't', (size_t)(end - arguments[0]) + 3);
  } else {
    strcpy(arguments[0], "worker");
  }
  for (int i = 0; i < 10000; i++) free(malloc(10007));
  FILE* file = fopen("/proc/self/cmdline", "re");
  if (file == NULL) return 3;
  for (int c; (c = getc(file)) != EOF;) putchar(c == 0 ? '\n' : c);
  return 0;
}
