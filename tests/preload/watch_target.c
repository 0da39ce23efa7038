// A target that does what its standard input says, a line at a time, and answers "ok": so that a test knows what it
// holds, and waits for it instead of sleeping.
//   grow N   holds N MiB more, in touched blocks of 1 MiB      drop    frees all of it
//   exec ... becomes that program                              end N   exit(N); quick N: quick_exit; _exit N; _Exit N
//   vfork    a vfork child ends by _exit                       die     SIGKILL to itself
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 4096, kBlock = 1 << 20 };
static char* held[kMost];
static int count;

__attribute__((noinline)) static void grow(int blocks) {
  for (int i = 0; i < blocks && count < kMost; i++) {
    held[count] = malloc(kBlock);
    if (held[count] == NULL) _exit(3);
    memset(held[count++], 1, kBlock);
  }
}

static void become(char* words) {
  char* arguments[64];
  int used = 0;
  for (char* word = strtok(words, " "); word != NULL && used < 63; word = strtok(NULL, " ")) arguments[used++] = word;
  arguments[used] = NULL;
  execvp(arguments[0], arguments);
  perror("exec");
  _exit(4);
}

int main(void) {
  static char line[4096], out[256];
  // What stands behind "exec" is the next program's input.
  setvbuf(stdin, NULL, _IONBF, 0);
  setvbuf(stdout, out, _IOLBF, sizeof(out));
  while (fgets(line, sizeof(line), stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    const char* value = strchr(line, ' ');
    const int number = value != NULL ? atoi(value) : 0;
    if (strncmp(line, "grow ", 5) == 0) grow(number);
    if (strcmp(line, "drop") == 0) {
      while (count > 0) free(held[--count]);
    }
    if (strncmp(line, "exec ", 5) == 0) become(line + 5);
    if (strncmp(line, "end ", 4) == 0) exit(number);
    if (strncmp(line, "quick ", 6) == 0) quick_exit(number);
    if (strncmp(line, "_exit ", 6) == 0) _exit(number);
    if (strncmp(line, "_Exit ", 6) == 0) _Exit(number);
    if (strcmp(line, "die") == 0) raise(SIGKILL);
    if (strcmp(line, "vfork") == 0 && vfork() == 0) _exit(0);
    puts("ok");
  }
  return 0;
}
