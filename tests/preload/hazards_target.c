// One way to get at a preloaded profiler for each name in the table at the end: hazards_target NAME [ARGUMENT...].
//
// Each allocates a hundred blocks, does its worst, and allocates a hundred more; what it says of them (lines ALLOC, as the programs in
// tests/programs do) must be what the profile shows, and all it prints must be the same bare. hazards_test.py runs them and
// looks at what else must hold.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NI __attribute__((noinline))
extern char** environ;

enum { kBlocks = 100 };
static void* kept[16 * kBlocks];
static int kept_count;
static void keep(void* block) {
  if (block == NULL) abort();
  memset(block, 1, 8);
  kept[kept_count++] = block;
}

NI void site_before(void) {
  for (int i = 0; i < kBlocks; i++) keep(malloc(703));
}
NI void site_after(void) {
  for (int i = 0; i < kBlocks; i++) keep(malloc(907));
}
NI void* site_hazard(void) { return malloc(1201); }

// Enough for a sample at 512 KiB, whatever the seed.
NI void site_volume(void) {
  for (int i = 0; i < 3000; i++) free(malloc(10007));
}
static void churn(int count) {
  for (int i = 0; i < count; i++) {
    void* block = malloc(50 + (size_t)i % 5000);
    block = realloc(block, 6000);
    free(block);
  }
}
static void fail(const char* what) {
  printf("FAIL %s: %s\n", what, strerror(errno));
  exit(1);
}

// ---- threads, stacks, signals ----

static pthread_key_t keys[3];
static void rearm(void* value) {
  intptr_t round = (intptr_t)value;
  free(malloc(300));
  if (round < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(keys[round % 3], (void*)(round + 1));
}
extern int __cxa_thread_atexit_impl(void (*)(void*), void*, void*) __attribute__((weak));
extern void* __dso_handle;
static void late(void* block) {
  free(block);
  free(site_hazard());
}
static void* with_destructors(void* argument) {
  for (int k = 0; k < 3; k++) pthread_setspecific(keys[k], (void*)1);
  if (__cxa_thread_atexit_impl != NULL) __cxa_thread_atexit_impl(late, malloc(400), &__dso_handle);
  return argument;
}
static void thread_destructors(char** arguments) {
  for (int k = 0; k < 3; k++) pthread_key_create(&keys[k], rearm);
  for (int i = 0; i < 200; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, with_destructors, NULL) != 0) fail("pthread_create");
    pthread_join(thread, NULL);
  }
}

// Stacks that hold junk where a caller's frame would be, resumed on another thread than the one that began them.
enum { kFibers = 20, kFiberStack = 24 * 1024 };
static ucontext_t fiber[kFibers], back;
static void run_fiber(int which) {
  for (int i = 0; i < 3; i++) {
    keep(site_hazard());
    swapcontext(&fiber[which], &back);
  }
  for (;;) swapcontext(&fiber[which], &back);
}
static void* resume_all(void* argument) {
  for (int i = 0; i < kFibers; i++) swapcontext(&back, &fiber[i]);
  return argument;
}
static void fibers(char** arguments) {
  for (int i = 0; i < kFibers; i++) {
    char* stack = mmap(NULL, kFiberStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(stack, 0xa5, kFiberStack);
    getcontext(&fiber[i]);
    fiber[i].uc_stack.ss_sp = stack;
    fiber[i].uc_stack.ss_size = kFiberStack;
    fiber[i].uc_link = NULL;
    makecontext(&fiber[i], (void (*)(void))run_fiber, 1, i);
  }
  resume_all(NULL);
  for (int round = 0; round < 2; round++) {
    pthread_t thread;
    pthread_create(&thread, NULL, resume_all, NULL);
    pthread_join(thread, NULL);
  }
  printf("ALLOC site_hazard count=%d bytes=%d live=%d livebytes=%d\n", 3 * kFibers, 3 * kFibers * 1201, 3 * kFibers, 3 * kFibers * 1201);
}

NI void* site_deep(void) { return malloc(2003); }
static NI int down(int depth) {
  volatile int here = depth;
  if (depth == 0) {
    for (int i = 0; i < kBlocks; i++) keep(site_deep());
  } else {
    here += down(depth - 1);
  }
  return here;
}
static void* go_down(void* argument) {
  down(100000);
  return argument;
}
static void deep_recursion(char** arguments) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 20);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, go_down, NULL) != 0) fail("pthread_create");
  pthread_join(thread, NULL);
  printf("ALLOC site_deep count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 2003, kBlocks, kBlocks * 2003);
}

// A profiling timer whose handler maps memory (which a handler may, by number, as it may not malloc) in the middle of everything.
static volatile sig_atomic_t ticks;
static void on_tick(int number) {
  const int saved = errno;
  void* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) munmap(page, 8192);
  ticks++;
  errno = saved;
}
static void start_timer(int which, int number, void (*handler)(int)) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(number, &action, NULL);
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(which, &every, NULL);
}
static void stop_timer(int which) {
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(which, &never, NULL);
}
static void* churn_thread(void* argument) {
  churn(2000);
  return argument;
}
static void profiling_timer(char** arguments) {
  start_timer(ITIMER_PROF, SIGPROF, on_tick);
  while (ticks < 100) {
    churn(500);
    pthread_t thread;
    pthread_create(&thread, NULL, churn_thread, NULL);
    pthread_join(thread, NULL);
  }
  stop_timer(ITIMER_PROF);
}

// A handler that interrupts the vDSO and allocates: its stack goes on through code that no file has.
static void allocate_in_handler(int number) {
  if (ticks < kBlocks) keep(site_hazard());
  ticks++;
}
static void vdso_interrupted(char** arguments) {
  start_timer(ITIMER_REAL, SIGALRM, allocate_in_handler);
  struct timespec now;
  while (ticks < kBlocks) clock_gettime(CLOCK_MONOTONIC, &now);
  stop_timer(ITIMER_REAL);
  printf("ALLOC site_hazard count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 1201, kBlocks, kBlocks * 1201);
}

// Unwind tables that are registered while the program runs, as a JIT compiler does.
extern void __register_frame(void*);
extern void __deregister_frame(void*);
static struct {
  uint32_t length, id;
  uint8_t body[12];
  uint32_t fde_length, cie;
  uint64_t start, bytes;
  uint8_t fde_body[4];
  uint32_t end;
} __attribute__((packed)) frame_table = {
    .length = 16, .id = 0, .body = {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0}, .fde_length = 24, .cie = 24, .bytes = 64};
static void* register_frames(void* argument) {
  for (int i = 0; i < 2000; i++) {
    __register_frame(&frame_table);
    free(malloc(100));
    __deregister_frame(&frame_table);
  }
  return argument;
}
static void registered_frames(char** arguments) {
  frame_table.start = (uint64_t)(uintptr_t)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, register_frames, NULL);
  churn(5000);
  pthread_join(thread, NULL);
}

static void thread_names(char** arguments) {
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages + 4096, 4096);
  const char* names[] = {(char*)1, NULL, pages + 4096, pages + 4093, "a name that is longer than sixteen", ""};
  memset(pages, 'x', 4096);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    char got[16];
    errno = 0;
    const int error = prctl(PR_SET_NAME, names[i], 0, 0, 0);
    const int why = errno;
    prctl(PR_GET_NAME, got, 0, 0, 0);
    printf("name %zu: %d %s, now %s\n", i, error, error == 0 ? "" : strerror(why), got);
  }
  printf("pthread_setname_np: %d\n", pthread_setname_np(pthread_self(), "much too long for the kernel"));
}

static void* endless(void* argument) {
  for (;;) churn(100);
  return argument;
}
static void* exit_soon(void* argument) {
  churn(1000);
  exit(7);
}
static void exit_from_a_thread(char** arguments) {
  pthread_t thread;
  for (int i = 0; i < 8; i++) pthread_create(&thread, NULL, endless, NULL);
  pthread_create(&thread, NULL, exit_soon, NULL);
  pthread_join(thread, NULL);
}

// ---- children ----

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
static void children(char** arguments) {
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
static void daemonise(char** arguments) {
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
static void environment_kept(char** arguments) {
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

// ---- privileges, limits ----

static void drop_privileges(char** arguments) {
  if (geteuid() == 0) {
    if (chroot(arguments[0]) != 0) fail("chroot");
    if (chdir("/") != 0) fail("chdir");
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) fail("setuid");
    printf("uid %d, %s\n", (int)getuid(), access("/proc/self/maps", F_OK) == 0 ? "/proc is there" : "nothing is there");
  } else if (chdir(arguments[0]) != 0) {
    fail("chdir");
  }
  umask(0777);
}

static void address_space(char** arguments) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1) fail("statm");
  fclose(file);
  const struct rlimit limit = {(rlim_t)pages * 4096 + (256u << 20), RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
  for (int round = 0; round < 3; round++) {
    static char* blocks[400];
    int count = 0;
    errno = 0;
    while (count < 400 && (blocks[count] = malloc(1000003)) != NULL) count++;
    printf("%s: %s\n", count < 400 ? "refused" : "not refused", strerror(errno));
    errno = 0;
    void* mapping = mmap(NULL, 1ul << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("mmap: %s, %s\n", mapping == MAP_FAILED ? "refused" : "not refused", strerror(errno));
    while (count > 0) free(blocks[--count]);
    churn(1000);
  }
}

static void no_descriptors(char** arguments) {
  const struct rlimit none = {3, 3};
  setrlimit(RLIMIT_NOFILE, &none);
  site_volume();
  const int fd = open("/dev/null", O_RDONLY);
  printf("open: %d %s\n", fd, fd < 0 ? strerror(errno) : "");
}

// ---- the live file ----

// HOW and the directory of the live files; where there is none (bare) there is nothing to do.
static void file_harmed(char** arguments) {
  const char* how = arguments[0];
  char pattern[4096];
  snprintf(pattern, sizeof(pattern), "%s/cadastre-*-%d-*.cad", arguments[1], (int)getpid());
  site_volume();
  void* library = dlopen("librt.so.1", RTLD_NOW);
  glob_t found;
  const int error = glob(pattern, 0, NULL, &found);
  for (size_t i = 0; error == 0 && i < found.gl_pathc; i++) {
    const char* path = found.gl_pathv[i];
    struct stat file;
    if (stat(path, &file) != 0) fail("stat");
    int failed = 0;
    if (strcmp(how, "emptied") == 0) failed = truncate(path, 0);
    if (strcmp(how, "cut") == 0) failed = truncate(path, file.st_size / 2);
    if (strcmp(how, "shortened") == 0) failed = truncate(path, file.st_size - 1);
    if (strcmp(how, "refilled") == 0) failed = truncate(path, 0) != 0 || truncate(path, file.st_size) != 0;
    if (strcmp(how, "deleted") == 0) failed = unlink(path);
    if (strcmp(how, "holed") == 0) {
      const int fd = open(path, O_RDWR);
      failed = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, file.st_size);
      close(fd);
    }
    if (failed != 0) fail(how);
  }
  // The stated limit: a process looks at its file at most once in 20 us.
  const struct timespec limit = {0, 1000000};
  nanosleep(&limit, NULL);
  // Every door to the profile: frees of sampled blocks, samples, mappings, libraries, names, threads, the end.
  if (library != NULL) dlclose(library);
  for (int i = 0; i < kept_count; i++) free(kept[i]);
  kept_count = 0;
  site_volume();
  pthread_key_t key;
  pthread_key_create(&key, NULL);
  void* page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(page, 4096, PROT_NONE);
  munmap(page, 8192);
  prctl(PR_SET_NAME, "renamed", 0, 0, 0);
  pthread_setname_np(pthread_self(), "again");
  pthread_t thread;
  pthread_create(&thread, NULL, churn_thread, NULL);
  pthread_join(thread, NULL);
  churn(10000);
}

// ---- mappings ----

NI void* site_mapping(void) { return mmap(NULL, 12 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
NI void* site_segment(int id) { return shmat(id, NULL, 0); }

// Calls that fail take nothing away.
static void failing_unmap(char** arguments) {
  char* mapping = site_mapping();
  errno = 0;
  int error = munmap(mapping, 1ul << 60);
  printf("munmap of too much: %d %s\n", error, strerror(errno));
  error = munmap(mapping + 1, 4096);
  printf("munmap of an odd address: %d %s\n", error, strerror(errno));
  const int id = shmget(IPC_PRIVATE, 5 * 4096, 0600 | IPC_CREAT);
  char* segment = id >= 0 ? site_segment(id) : NULL;
  if (segment == NULL) fail("shmat");
  shmctl(id, IPC_RMID, NULL);
  char* second = site_segment(id);
  error = shmdt(second);
  printf("shmdt: %d\n", error);
  error = shmdt(mapping);
  printf("shmdt of no segment: %d %s\n", error, strerror(errno));
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmdt, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) fail("seccomp");
  error = shmdt(segment);
  printf("shmdt that may not: %d %s\n", error, strerror(errno));
  printf("MAPPED site_mapping %d\nMAPPED site_segment %d\n", 12 * 4096, 5 * 4096);
}

// A mapping that goes without any function of libc's, and whose place is taken again.
static void raw_unmap(char** arguments) {
  for (int i = 0; i < 50; i++) {
    void* mapping = site_mapping();
    long result;
    asm volatile("syscall" : "=a"(result) : "a"(SYS_munmap), "D"(mapping), "S"(12 * 4096) : "rcx", "r11", "memory");
    if (result != 0) fail("munmap");
    if (mmap(mapping, 12 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != mapping) fail("mmap");
    munmap(mapping, 12 * 4096);
  }
  printf("MAPPED site_mapping 0\n");
}

// ---- libraries ----

typedef void* (*Make)(void);
static void use_library(const char* path, int count) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    printf("FAIL %s\n", dlerror());
    exit(1);
  }
  for (int i = 0; i < count; i++) keep(((Make)dlsym(library, "make"))());
}
// The library PATH makes blocks, then another build of it, OTHER, takes its place on the disk.
static void library_replaced(char** arguments) {
  use_library(arguments[0], kBlocks);
  if (rename(arguments[1], arguments[0]) != 0) fail("rename");
}
// PATH is unloaded, OTHER comes, perhaps to the same addresses.
static void library_unloaded(char** arguments) {
  for (int round = 0; round < 20; round++) {
    for (int which = 0; which < 2; which++) {
      void* library = dlopen(arguments[which], RTLD_NOW | RTLD_LOCAL);
      for (int i = 0; i < 5; i++) keep(((Make)dlsym(library, "make"))());
      dlclose(library);
    }
  }
}
static void odd_paths(char** arguments) {
  use_library(arguments[0], kBlocks);  // a path with blanks, a newline and a semicolon
  const int memory = memfd_create("a library (deleted)", MFD_CLOEXEC), file = open(arguments[1], O_RDONLY | O_CLOEXEC);
  char buffer[4096];
  for (ssize_t got; (got = read(file, buffer, sizeof(buffer))) > 0;) {
    if (write(memory, buffer, (size_t)got) != got) fail("write");
  }
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
  use_library(path, kBlocks);
  close(memory);
  close(file);
}

// Code that a compiler in the process makes, named in /tmp/perf-PID.map.
static void* (*allocate_for_code)(void) = site_hazard;
static void generated_code(char** arguments) {
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};  // push rbp; mov rbp,rsp; call rdi; pop rbp; ret
  unsigned char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(page, code, sizeof(code));
  mprotect(page, 4096, PROT_READ | PROT_EXEC);
  char path[64];
  snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(path, "wx");
  if (map == NULL) fail(path);
  fprintf(map, "%lx %zx Generated.code\n", (unsigned long)page, sizeof(code));
  fclose(map);
  for (int i = 0; i < kBlocks; i++) keep(((void* (*)(void* (*)(void)))page)(allocate_for_code));
  printf("ALLOC site_hazard count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 1201, kBlocks, kBlocks * 1201);
}

static void nothing(char** arguments) {
  churn(5000);
  site_volume();
}

static const struct {
  const char* name;
  void (*run)(char**);
} cases[] = {{"thread_destructors", thread_destructors},
             {"fibers", fibers},
             {"deep_recursion", deep_recursion},
             {"profiling_timer", profiling_timer},
             {"vdso_interrupted", vdso_interrupted},
             {"registered_frames", registered_frames},
             {"thread_names", thread_names},
             {"exit_from_a_thread", exit_from_a_thread},
             {"children", children},
             {"daemonise", daemonise},
             {"environment_kept", environment_kept},
             {"drop_privileges", drop_privileges},
             {"address_space", address_space},
             {"no_descriptors", no_descriptors},
             {"file_harmed", file_harmed},
             {"failing_unmap", failing_unmap},
             {"raw_unmap", raw_unmap},
             {"library_replaced", library_replaced},
             {"library_unloaded", library_unloaded},
             {"odd_paths", odd_paths},
             {"generated_code", generated_code},
             {"nothing", nothing}};

int main(int count, char** arguments) {
  static char line[BUFSIZ];
  setvbuf(stdout, line, _IOLBF, sizeof(line));  // nothing is left in it for a child to write again
  if (count < 2) return 2;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(arguments[1], cases[i].name) != 0) continue;
    site_before();
    cases[i].run(arguments + 2);
    site_after();
    if (strcmp(arguments[1], "file_harmed") != 0) {
      printf("ALLOC site_before count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 703, kBlocks, kBlocks * 703);
      printf("ALLOC site_after count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 907, kBlocks, kBlocks * 907);
    }
    return 0;
  }
  return 2;
}
