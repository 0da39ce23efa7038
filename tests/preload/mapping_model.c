// Drives random mapping calls from several threads, each in a window of its own, and writes at each checkpoint what the
// kernel says (/proc/self/maps) and what the profile says (a copy of it), for mapping_model_test.py to compare.
//
//   mapping_model DIRECTORY CALLS SEED     prints "window START END" lines, then "checkpoints N"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kThreads = 4, kPages = 2048, kCheckpoints = 5, kFree = 8 };
static const size_t kPage = 4096;
static char* windows[kThreads];
static pthread_barrier_t barrier;
static long calls;
static int memory_file;
static const char* directory;

static uint64_t Next(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

static void Copy(const char* from, const char* to) {
  int in = open(from, O_RDONLY), out = open(to, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  static char buffer[1 << 20];
  off_t at = 0;
  for (ssize_t got; (got = read(in, buffer, sizeof buffer)) > 0; at += got) {
    int empty = 1;
    for (ssize_t i = 0; i < got && empty; i++) empty = buffer[i] == 0;
    if (!empty && pwrite(out, buffer, (size_t)got, at) != got) abort();
  }
  if (ftruncate(out, at) != 0) abort();
  close(in);
  close(out);
}

// The live profile is a file that this process maps.
static void FindProfile(char* path) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[4200];
  path[0] = '\0';
  while (fgets(line, sizeof line, maps) != NULL) {
    char* name = strchr(line, '/');
    if (name == NULL || strstr(name, ".cad") == NULL) continue;
    name[strcspn(name, "\n")] = '\0';
    strcpy(path, name);
  }
  fclose(maps);
}

static void Checkpoint(int number) {
  char path[4200], to[4200];
  FindProfile(path);
  snprintf(to, sizeof to, "%s/%d.maps", directory, number);
  Copy("/proc/self/maps", to);
  snprintf(to, sizeof to, "%s/%d.cad", directory, number);
  if (path[0] != '\0') Copy(path, to);
}

static const int kProtections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_READ | PROT_EXEC};

struct Loose {
  char* address;
  size_t bytes;
};

static void OneCall(char* window, uint64_t* random, struct Loose* loose) {
  size_t page = Next(random) % kPages, count = 1 + Next(random) % (Next(random) % 8 == 0 ? 256 : 16);
  if (page + count > kPages) count = kPages - page;
  char* at = window + page * kPage;
  int protection = kProtections[Next(random) % 4];
  switch (Next(random) % 12) {
    case 0:
    case 1:
      mmap(at, count * kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      break;
    case 2:
      mmap(at, count * kPage, protection & ~PROT_EXEC, MAP_SHARED | MAP_FIXED, memory_file, 0);
      break;
    case 3:
    case 4:
      munmap(at, count * kPage - Next(random) % kPage);
      break;
    case 5:
    case 6:
      mprotect(at, count * kPage, protection);
      break;
    case 7: {  // within the window, or it fails: over a hole, over two mappings
      size_t to = Next(random) % kPages, wanted = 1 + Next(random) % 16;
      if (to + wanted > kPages) wanted = kPages - to;
      mremap(at, count * kPage, wanted * kPage, MREMAP_MAYMOVE | MREMAP_FIXED, window + to * kPage);
      break;
    }
    case 8:
      if (count > 1) mremap(at, count * kPage, (count / 2) * kPage, 0);  // shrinks
      break;
    case 9:
      madvise(at, count * kPage, MADV_DONTNEED);
      break;
    case 10:
      syscall(SYS_mmap, at, count * kPage, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      break;
    default: {  // outside the window, where other threads' mappings are
      struct Loose* one = &loose[Next(random) % kFree];
      if (one->address == NULL) {
        one->bytes = count * kPage;
        one->address = mmap(NULL, one->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (one->address == MAP_FAILED) abort();
      } else if (Next(random) % 2 == 0) {
        char* moved = mremap(one->address, one->bytes, 2 * one->bytes, MREMAP_MAYMOVE);
        if (moved == MAP_FAILED) abort();
        munmap(moved + one->bytes, one->bytes);
        one->address = moved;
      } else {
        if (munmap(one->address, one->bytes) != 0) abort();
        one->address = NULL;
      }
    }
  }
}

static void* Work(void* argument) {
  long number = (long)argument;
  uint64_t random = 0x9e3779b97f4a7c15u * (uint64_t)(number + 1) + (uint64_t)calls;
  struct Loose loose[kFree] = {{NULL, 0}};
  for (int checkpoint = 0; checkpoint < kCheckpoints; checkpoint++) {
    for (long i = 0; i < calls / kThreads / kCheckpoints; i++) OneCall(windows[number], &random, loose);
    pthread_barrier_wait(&barrier);
    if (number == 0) Checkpoint(checkpoint);
    pthread_barrier_wait(&barrier);
  }
  for (int i = 0; i < kFree; i++) {
    if (loose[i].address != NULL) munmap(loose[i].address, loose[i].bytes);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  directory = argv[1];
  calls = atol(argv[2]);
  memory_file = memfd_create("model", 0);
  if (ftruncate(memory_file, kPages * 4096) != 0) return 1;
  pthread_barrier_init(&barrier, NULL, kThreads);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; i++) {
    // Far below where the kernel looks for room: it would put other mappings into the windows' holes.
    windows[i] = mmap((char*)0x100000000000 + i * 0x100000000, kPages * 4096, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (windows[i] == MAP_FAILED) return 1;
    printf("window %lx %lx\n", (unsigned long)windows[i], (unsigned long)windows[i] + kPages * 4096ul);
  }
  for (long i = 0; i < kThreads; i++) pthread_create(&threads[i], NULL, Work, (void*)i);
  for (int i = 0; i < kThreads; i++) pthread_join(threads[i], NULL);
  Checkpoint(kCheckpoints);
  printf("checkpoints %d\n", kCheckpoints + 1);
  return 0;
}
