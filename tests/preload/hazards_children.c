// Cases of hazards_target: children of every kind, and what they inherit.
#define _GNU_SOURCE
#include "hazards_target.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int shared_with_child;
static int vm_child(void* argument) {
  void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page, 4096);
  free(malloc(600));
  shared_with_child++;
  _exit(3);
}
static int wait_for(pid_t pid) {
  int status = -1;
  if (pid <= 0 || waitpid(pid, &status, __WALL) != pid) fail("a child");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}
extern pid_t _Fork(void) __attribute__((weak));
void children(char** arguments) {
  pid_t pid = vfork();
  if (pid == 0) _exit(4);
  printf("vfork and _exit: %d\n", wait_for(pid));
  pid = vfork();
  if (pid == 0) {
    execl("/no/such/program", "program", (char*)NULL);
    execl("/bin/sh", "sh", "-c", "exit 5", (char*)NULL);
    _exit(6);
  }
  printf("vfork and exec: %d\n", wait_for(pid));
  char* command[] = {"sh", "-c", "exit 8", NULL};
  if (posix_spawn(&pid, "/bin/sh", NULL, NULL, command, environ) != 0) fail("posix_spawn");
  printf("posix_spawn: %d\n", wait_for(pid));
  static char stack[16 * 1024] __attribute__((aligned(16)));
  for (int i = 0; i < 20; i++) {
    pid = clone(vm_child, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    if (wait_for(pid) != 3) fail("clone");
  }
  printf("clone(CLONE_VM) %d times on 16 KiB\n", shared_with_child);
  if (_Fork != NULL) {
    pid = _Fork();
    if (pid == 0) {
      site_volume();
      churn(1000);
      _exit(9);
    }
    if (wait_for(pid) != 9) fail("_Fork");
  }
  pid = fork();
  if (pid == 0) {
    site_volume();
    exit(11);
  }
  printf("fork and exit: %d\n", wait_for(pid));
  FILE* pipe = popen("echo from a pipe", "r");
  char line[64];
  if (pipe == NULL || fgets(line, sizeof(line), pipe) == NULL) fail("popen");
  printf("%s", line);
  printf("pclose: %d, system: %d\n", WEXITSTATUS(pclose(pipe)), WEXITSTATUS(system("exit 12")));
}

// A daemon: two forks, a session of its own, no directory, no descriptor; it writes into the file ARGUMENT.
void daemonise(char** arguments) {
  int done[2];
  if (pipe(done) != 0) fail("pipe");
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    if (chdir("/") != 0) _exit(1);
    umask(0);
    const int hold = done[1];
    for (int fd = 0; fd < 1024; fd++) {
      if (fd != hold) close(fd);
    }
    site_volume();
    const int file = open(arguments[0], O_WRONLY | O_CREAT | O_EXCL, 0600);
    churn(5000);
    if (write(file, "the daemon was here\n", 20) != 20) _exit(2);
    exit(0);  // closes `hold`
  }
  close(done[1]);
  wait_for(pid);
  char byte;
  printf("the daemon has ended: %zd\n", read(done[0], &byte, 1));
}

static int by_name(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }
void environment_kept(char** arguments) {
  if (arguments[0] == NULL) {
    fflush(stdout);
    const pid_t pid = fork();
    const char* preload = getenv("LD_PRELOAD");
    if (pid == 0) {
      setenv("PRELOAD_OF_PARENT", preload != NULL ? preload : "", 1);
      execl("/proc/self/exe", "hazards_target", "environment_kept", "child", (char*)NULL);
      _exit(1);
    }
    printf("child: %d\n", wait_for(pid));
    return;
  }
  const char* preload = getenv("LD_PRELOAD");
  printf("LD_PRELOAD is %s\n", strcmp(preload != NULL ? preload : "", getenv("PRELOAD_OF_PARENT")) == 0 ? "as it was" : "changed");
  size_t count = 0;
  while (environ[count] != NULL) count++;
  qsort(environ, count, sizeof(environ[0]), by_name);
  for (size_t i = 0; i < count; i++) {
    if (strstr(environ[i], "LD_PRELOAD=") != environ[i] && strstr(environ[i], "CADASTRE_OPTIONS=") != environ[i] &&
        strstr(environ[i], "PRELOAD_OF_PARENT=") != environ[i]) {
      printf("%s\n", environ[i]);
    }
  }
}
