// Cases of hazards_target: limits and privileges, the live file, mappings, libraries.
#define _GNU_SOURCE
#include "hazards_target.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
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
#include <time.h>
#include <unistd.h>

// ---- limits, privileges ----

void drop_privileges(char** arguments) {
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

void address_space(char** arguments) {
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

void no_descriptors(char** arguments) {
  const struct rlimit none = {3, 3};
  setrlimit(RLIMIT_NOFILE, &none);
  site_volume();
  const int fd = open("/dev/null", O_RDONLY);
  printf("open: %d %s\n", fd, fd < 0 ? strerror(errno) : "");
}

// ---- the live file ----

// HOW and the directory of the live files; where there is none (bare) there is nothing to do.
// Everything that has been written, but for the last page, which tells a file that was cut.
static int overwrite(const char* path, off_t length) {
  const int fd = open(path, O_RDWR);
  unsigned char page[4096];
  uint64_t random = 88172645463325252ull;
  for (off_t at = 0; fd >= 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < length - (off_t)sizeof(page); at += (off_t)sizeof(page)) {
    for (size_t i = 0; i < sizeof(page); i++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      page[i] = (unsigned char)random;
    }
    if (pwrite(fd, page, sizeof(page), at) < 0) fail("pwrite");
  }
  return close(fd);
}

void file_harmed(char** arguments) {
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
    if (strcmp(how, "overwritten") == 0) failed = overwrite(path, file.st_size);
    if (strcmp(how, "holed") == 0) {
      const int fd = open(path, O_RDWR);
      failed = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, file.st_size);
      close(fd);
    }
    if (failed != 0) fail(how);
  }
  // Every door to the profile: frees of sampled blocks, samples, mappings, libraries, names, threads, the end.
  if (library != NULL) dlclose(library);
  free_kept();
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

static void* cut_soon(void* path) {
  const struct timespec soon = {0, 3000000};
  nanosleep(&soon, NULL);
  if (truncate(path, 0) != 0) fail("truncate");
  return NULL;
}

// The directory of the live files. One is cut while the kernel is at a call that takes some 50 ms, and is not seen before it ends.
void file_cut_in_a_slow_call(char** arguments) {
  char pattern[4096];
  snprintf(pattern, sizeof(pattern), "%s/cadastre-*-%d-*.cad", arguments[0], (int)getpid());
  site_volume();
  glob_t found;
  const int error = glob(pattern, 0, NULL, &found);
  pthread_t thread;
  if (error == 0) pthread_create(&thread, NULL, cut_soon, found.gl_pathv[0]);
  const size_t bytes = 192 << 20;
  void* mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  munmap(mapping, bytes);
  if (error == 0) pthread_join(thread, NULL);
}

// ---- mappings ----

NI void* site_mapping(void) { return mmap(NULL, 12 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
NI void* site_segment(int id) { return shmat(id, NULL, 0); }

// Calls that fail take nothing away.
void failing_unmap(char** arguments) {
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
void raw_unmap(char** arguments) {
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
void library_replaced(char** arguments) {
  use_library(arguments[0], kBlocks);
  if (rename(arguments[1], arguments[0]) != 0) fail("rename");
}
// PATH is unloaded, OTHER comes, perhaps to the same addresses.
void library_unloaded(char** arguments) {
  for (int round = 0; round < 20; round++) {
    for (int which = 0; which < 2; which++) {
      void* library = dlopen(arguments[which], RTLD_NOW | RTLD_LOCAL);
      for (int i = 0; i < 5; i++) keep(((Make)dlsym(library, "make"))());
      dlclose(library);
    }
  }
}
// Both come and go on four threads at once: what one thread looks up another one may be unmapping.
static void* load_often(void* arguments) {
  char** paths = arguments;
  for (int round = 0; round < 150; round++) {
    void* library = dlopen(paths[round % 2], RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < 50; i++) free(((Make)dlsym(library, "make"))());
    dlclose(library);
  }
  return NULL;
}
void library_storm(char** arguments) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, load_often, arguments);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}
void odd_paths(char** arguments) {
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
void generated_code(char** arguments) {
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
