// What a program sees of its action for SIGBUS, which stands behind Cadastre's once it allocates without a pause at
// interval 1. hazards_bus CASE
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

sighandler_t bsd_signal(int, sighandler_t);  // not declared by today's headers

static sigjmp_buf back;
static char* lost;  // a page behind the end of its file
static char alternate[64 * 1024];

static void use(void* block) { __asm__ volatile("" ::"r"(block) : "memory"); }
// More often than a second may have it for Cadastre not to take SIGBUS, in as good as one second.
static void allocate(void) {
  for (int i = 0; i < 30000; i++) {
    void* block = malloc(100);
    use(block);
    free(block);
  }
}

static void simple(int signal) { printf("simple got %d\n", signal); }
static void jumping(int signal, siginfo_t* info, void* context) {
  char here;
  sigset_t mask;
  sigprocmask(SIG_BLOCK, NULL, &mask);
  printf("jumping got %d code %d, %s the page, %s stack, context %s, USR1 %d BUS %d\n", signal, info->si_code,
         info->si_addr == lost ? "at" : "not at", &here >= alternate && &here < alternate + sizeof(alternate) ? "alternate" : "usual",
         context != NULL ? "there" : "missing", sigismember(&mask, SIGUSR1), sigismember(&mask, SIGBUS));
  siglongjmp(back, 1);
}
static void queued(int signal, siginfo_t* info, void* context) {
  printf("queued got %d code %d value %d\n", signal, info->si_code, info->si_value.sival_int);
}

static const char* name_of(sighandler_t handler) {
  return handler == SIG_DFL    ? "default"
         : handler == SIG_IGN  ? "ignored"
         : handler == SIG_ERR  ? "error"
         : handler == SIG_HOLD ? "held"
         : handler == simple   ? "simple"
         : handler == (sighandler_t)(uintptr_t)jumping ? "jumping"
         : handler == (sighandler_t)(uintptr_t)queued ? "queued"
                                                      : "UNKNOWN";
}

static void tell(const char* after) {
  struct sigaction now;
  memset(&now, 0x55, sizeof(now));
  if (sigaction(SIGBUS, NULL, &now) != 0) printf("sigaction: %s\n", strerror(errno));
  printf("%s: %s flags %x mask", after, name_of(now.sa_handler), (unsigned)now.sa_flags);
  for (int s = 1; s < 32; s++) {
    if (sigismember(&now.sa_mask, s)) printf(" %d", s);
  }
  printf("\n");
}

static int set(void (*handler)(int, siginfo_t*, void*), int flags, int masked) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO};
  sigemptyset(&action.sa_mask);
  if (masked != 0) sigaddset(&action.sa_mask, masked);
  struct sigaction old;
  const int result = sigaction(SIGBUS, &action, &old);
  printf("set, was %s %x\n", name_of(old.sa_handler), (unsigned)old.sa_flags);
  return result;
}

static void lose_a_page(void) {
  const int fd = memfd_create("lost", 0);
  if (ftruncate(fd, 4096) != 0) exit(3);
  lost = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (ftruncate(fd, 0) != 0) exit(3);
}

static void asks(void) {
  tell("at first");
  set(jumping, SA_ONSTACK | SA_NODEFER, SIGUSR1);
  tell("after sigaction");
  struct sigaction full = {.sa_handler = simple};
  sigfillset(&full.sa_mask);
  sigaction(SIGBUS, &full, NULL);
  tell("after a full mask");
  printf("signal: %s\n", name_of(signal(SIGBUS, simple)));
  tell("after signal");
  printf("siginterrupt: %d\n", siginterrupt(SIGBUS, 1));
  tell("after siginterrupt 1");
  printf("siginterrupt: %d\n", siginterrupt(SIGBUS, 0));
  tell("after siginterrupt 0");
  printf("sysv_signal: %s\n", name_of(sysv_signal(SIGBUS, simple)));
  tell("after sysv_signal");
  printf("bsd_signal: %s\n", name_of(bsd_signal(SIGBUS, SIG_DFL)));
  tell("after bsd_signal");
  printf("ssignal: %s\n", name_of(ssignal(SIGBUS, simple)));
  printf("sigset: %s\n", name_of(sigset(SIGBUS, SIG_HOLD)));
  tell("after a hold");
  printf("sigset: %s\n", name_of(sigset(SIGBUS, SIG_DFL)));
  tell("after sigset");
  const struct sigaction standard = {.sa_handler = SIG_DFL};
  sigaction(SIGBUS, &standard, NULL);
  tell("after sigaction with nothing");
  printf("sigignore: %d\n", sigignore(SIGBUS));
  tell("after sigignore");
  raise(SIGBUS);
  printf("signal: %s, wrong: %s", name_of(signal(SIGBUS, simple)), name_of(signal(SIGBUS, SIG_ERR)));
  printf(" %s\n", strerror(errno));
  // More actions than anybody has.
  for (int i = 1; i < 30; i++) {
    for (int k = 0; k < 5; k++) {
      if (i != SIGKILL && i != SIGSTOP) {
        struct sigaction action = {.sa_handler = simple, .sa_flags = k};
        sigaddset(&action.sa_mask, i);
        sigaction(SIGBUS, &action, NULL);
      }
    }
  }
  tell("after many");
  raise(SIGBUS);
  allocate();
}

static void meets(void) {
  const stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
  sigaltstack(&stack, NULL);
  lose_a_page();
  const int flags[] = {0, SA_ONSTACK, SA_NODEFER, SA_RESTART};
  for (int i = 0; i < 4; i++) {
    set(jumping, flags[i], SIGUSR1);
    if (sigsetjmp(back, 1) == 0) *(volatile char*)lost = 1;
    allocate();
  }
  set(queued, 0, 0);
  sigqueue(getpid(), SIGBUS, (union sigval){.sival_int = 42});
  raise(SIGBUS);
  set(jumping, SA_RESETHAND, 0);
  if (sigsetjmp(back, 1) == 0) *(volatile char*)lost = 1;
  tell("after one that is reset");
  fflush(stdout);
  *(volatile char*)lost = 1;
  printf("FAIL: not killed\n");
}

static void is_killed_by(const char* how) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    allocate();
    if (strcmp(how, "raise") == 0) raise(SIGBUS);
    if (strcmp(how, "kill") == 0) kill(getpid(), SIGBUS);
    if (strcmp(how, "touch") == 0) *(volatile char*)lost = 1;
    _exit(4);
  }
  int status;
  waitpid(child, &status, 0);
  printf("%s: signal %d\n", how, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void children(const char* self) {
  lose_a_page();
  is_killed_by("raise");
  is_killed_by("kill");
  is_killed_by("touch");
  signal(SIGBUS, simple);
  const pid_t reset = vfork();
  if (reset == 0) {
    for (int i = 1; i < 32; i++) signal(i, SIG_DFL);
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    sigaction(SIGBUS, &ignored, NULL);
    execl(self, self, "tells", (char*)NULL);
    _exit(5);
  }
  waitpid(reset, NULL, 0);
  tell("after vfork");
  raise(SIGBUS);
  const pid_t changed = fork();
  if (changed == 0) {
    tell("in a child");
    set(queued, 0, 0);
    tell("in a child that set its own");
    raise(SIGBUS);
    fflush(stdout);
    _exit(0);
  }
  waitpid(changed, NULL, 0);
  tell("after fork");
  raise(SIGBUS);
  signal(SIGBUS, SIG_IGN);
  fflush(stdout);
  execl(self, self, "tells", (char*)NULL);
}

static void* be_busy(void* until) {
  void* kept[64] = {0};
  for (unsigned i = 0; !__atomic_load_n((int*)until, __ATOMIC_RELAXED); i++) {
    free(kept[i % 64]);
    kept[i % 64] = malloc(16 + i % 1000);
    use(kept[i % 64]);
  }
  for (int i = 0; i < 64; i++) free(kept[i]);
  return NULL;
}

// Whether the kernel says that SIGBUS is caught; the test asks.
static void tell_what_is_caught(void) {
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, "SigCgt:", 7) == 0) printf("%s", line);
  }
  fclose(status);
}

// Two threads that do nothing but allocate, for as long as standard input is open.
static void busy(void) {
  int is_over = 0;
  char byte;
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, be_busy, &is_over);
  allocate();
  printf("busy\n");
  fflush(stdout);
  while (read(0, &byte, 1) > 0) {
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  tell("at the end");
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  if (argc != 2) return 2;
  if (strcmp(argv[1], "idle") == 0) {
    for (int i = 0; i < 3000; i++) use(malloc(100));
    tell_what_is_caught();
    return 0;
  }
  allocate();
  if (strcmp(argv[1], "caught") == 0) tell_what_is_caught();
  if (strcmp(argv[1], "asks") == 0) asks();
  if (strcmp(argv[1], "meets") == 0) meets();
  if (strcmp(argv[1], "children") == 0) children(argv[0]);
  if (strcmp(argv[1], "tells") == 0) tell("after exec");
  if (strcmp(argv[1], "busy") == 0) busy();
  return 0;
}
