/* Memory of each kind that the RSS ledger has a row for, and what it should say of it.
 * rss_target tricks FILE | rss_target blocks
 *   tricks: mappings made, split, moved, taken apart and given back; threads that use their stacks.
 *   blocks: 145 MiB of blocks of an allocator, half of them freed, some by threads that stay; and what the allocator
 *           itself says: what is resident, or with glibc what its arenas have and what of it is free.
 * Prints "NAME BYTES" lines of what is resident, then "ready", and waits for the end of its input. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIB (1024 * 1024l)

extern char end_of_data __asm__("_end"); /* the linker's */

static char *map(long bytes, int protection, int flags, int descriptor) {
  char *mapping = mmap(NULL, (size_t)bytes, protection, flags, descriptor, 0);
  if (mapping == MAP_FAILED) exit(3);
  return mapping;
}

static char *anonymous(long bytes, int protection) {
  char *mapping = map(bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  madvise(mapping, (size_t)bytes, MADV_NOHUGEPAGE); /* or touching one page makes 2 MiB resident */
  return mapping;
}

/* Two neighbours, which the kernel makes one: of the one nobody writes a page, so none is resident. */
static __attribute__((noinline)) void read_all(char *at, long bytes) {
  volatile char *mapping = mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (mapping != at || madvise(at, (size_t)bytes, MADV_NOHUGEPAGE) != 0) exit(3);
  for (long i = 0; i < bytes; i += 4096) (void)mapping[i];
}

static __attribute__((noinline)) void write_all(char *at, long bytes) {
  char *mapping = mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (mapping != at || madvise(at, (size_t)bytes, MADV_NOHUGEPAGE) != 0) exit(3);
  memset(at, 1, (size_t)bytes);
}

/* 64 KiB that the kernel makes grow to `bytes`, in a gap that is large enough. */
static void grow_down(long bytes) {
  char *gap = map(bytes + 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1), *top = gap + bytes + 4 * MIB;
  munmap(gap, (size_t)bytes + 4 * MIB);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN;
  if (mmap(top - 65536, 65536, PROT_READ | PROT_WRITE, flags, -1, 0) != top - 65536) exit(3);
  for (char *at = top - 1; at >= top - bytes; at -= 4096) *at = 1;
}

static pthread_barrier_t used;

static void *thread_that_uses_its_stack(void *unused) {
  volatile char room[MIB] __attribute__((unused));
  for (long i = 0; i < MIB; i += 4096) room[i] = 1;
  pthread_barrier_wait(&used);
  pause();
  return unused;
}

static void *thread_that_ends(void *unused) { return unused; }

static void tricks(const char *file) {
  const int all = PROT_READ | PROT_WRITE;
  long resident = 0;
  char *half = anonymous(8 * MIB, all);
  memset(half, 1, 4 * MIB);
  resident += 4 * MIB;
  char *overlaid = anonymous(8 * MIB, all);
  memset(overlaid, 1, 8 * MIB); /* 4 MiB in the middle are replaced by something that nobody touches */
  if (mmap(overlaid + 2 * MIB, 4 * MIB, all, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) exit(3);
  resident += 4 * MIB;
  char *moved = anonymous(2 * MIB, all);
  memset(moved, 1, 2 * MIB);
  if (mremap(moved, 2 * MIB, 16 * MIB, MREMAP_MAYMOVE) == MAP_FAILED) exit(3);
  resident += 2 * MIB;
  char *reserved = anonymous(64 * MIB, PROT_NONE);
  if (mprotect(reserved + 8 * MIB, 3 * MIB, all) != 0) exit(3);
  memset(reserved + 8 * MIB, 1, 3 * MIB);
  resident += 3 * MIB;
  char *given_back = anonymous(6 * MIB, all);
  memset(given_back, 1, 6 * MIB);
  madvise(given_back, 5 * MIB, MADV_DONTNEED);
  resident += 1 * MIB;
  char *holes = anonymous(6 * MIB, all);
  memset(holes, 1, 6 * MIB);
  munmap(holes + 2 * MIB, 2 * MIB);
  resident += 4 * MIB;
  char *by_number = (char *)syscall(SYS_mmap, NULL, 5 * MIB, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
  if (by_number == MAP_FAILED) exit(3);
  madvise(by_number, 5 * MIB, MADV_NOHUGEPAGE);
  memset(by_number, 1, 5 * MIB);
  resident += 5 * MIB;
  /* Right above our own zero-initialised data, where it grows together with that. */
  const long page = 4096;
  char *above = (char *)(((uintptr_t)&end_of_data + page - 1) / page * page);
  char *put = mmap(above, 2 * MIB, all, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  const long above_bytes = put == above ? 2 * MIB : 0; /* without randomised addresses the heap is there */
  if (above_bytes != 0) {
    madvise(above, (size_t)above_bytes, MADV_NOHUGEPAGE);
    memset(above, 1, (size_t)above_bytes);
  }
  resident += above_bytes;
  printf("above %ld\n", above_bytes);
  char *pair = map(8 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  read_all(pair, 4 * MIB);
  write_all(pair + 4 * MIB, 4 * MIB);
  resident += 4 * MIB;
  grow_down(3 * MIB);
  resident += 3 * MIB;
  int zeros = open("/dev/zero", O_RDWR);
  char *from_zeros = map(2 * MIB, all, MAP_PRIVATE, zeros);
  close(zeros);
  memset(from_zeros, 1, 2 * MIB);
  resident += 2 * MIB;
  map(64 * MIB, all, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
  printf("anonymous %ld\n", resident);

  char *shared = map(3 * MIB, all, MAP_SHARED | MAP_ANONYMOUS, -1);
  memset(shared, 1, 3 * MIB);
  printf("shared %ld\n", 3 * MIB);
  int descriptor = open(file, O_RDWR | O_CREAT, 0600);
  if (descriptor < 0 || ftruncate(descriptor, 7 * MIB) != 0) exit(3);
  char *mapped = map(7 * MIB, all, MAP_SHARED, descriptor);
  memset(mapped, 1, 7 * MIB);
  close(descriptor);
  printf("file %ld\n", 7 * MIB);

  const int threads = 4;
  pthread_barrier_init(&used, NULL, threads + 1);
  for (int i = 0; i < threads; i++) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    /* One brings its stack along, in a block. */
    if (i == 0 && pthread_attr_setstack(&attributes, aligned_alloc((size_t)page, 2 * MIB), 2 * MIB) != 0) exit(3);
    if (pthread_create(&thread, &attributes, thread_that_uses_its_stack, NULL) != 0) exit(3);
    pthread_attr_destroy(&attributes);
    pthread_setname_np(thread, "stack user");
  }
  pthread_t ended;
  if (pthread_create(&ended, NULL, thread_that_ends, NULL) != 0) exit(3);
  pthread_setname_np(ended, "ended");
  pthread_join(ended, NULL);
  pthread_barrier_wait(&used);
  printf("stacks %ld\n", threads * MIB);
}

static char *blocks[65536];

/* Frees every other block of its own: its arena has chunks of many lists that are free. */
static void *thread_that_uses_its_arena(void *live) {
  static char *kept[4][1000];
  static int next;
  char **mine = kept[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)];
  for (long i = 0; i < 1000; i++) {
    mine[i] = malloc((size_t)(40 + 10 * i));
    if (mine[i] == NULL) exit(3);
    memset(mine[i], 1, (size_t)(40 + 10 * i));
  }
  long bytes = 0;
  for (long i = 0; i < 1000; i++) {
    if (i % 2 == 0) free(mine[i]);
    if (i % 2 != 0) bytes += 40 + 10 * i;
  }
  __atomic_fetch_add((long *)live, bytes, __ATOMIC_RELAXED);
  pthread_barrier_wait(&used);
  pause();
  return NULL;
}

static void use_allocator(void) {
  const long count = 65536, bytes = 2000;
  for (long i = 0; i < count; i++) {
    blocks[i] = malloc(bytes);
    if (blocks[i] == NULL) exit(3);
    memset(blocks[i], 1, bytes);
  }
  long live = 0;
  pthread_barrier_init(&used, NULL, 5);
  for (int i = 0; i < 4; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_that_uses_its_arena, &live) != 0) exit(3);
  }
  pthread_barrier_wait(&used);
  for (long i = 0; i < count; i++) {
    if (i / 64 % 2 == 0) {
      free(blocks[i]);
      blocks[i] = NULL;
    } else {
      live += bytes;
    }
  }
  printf("live %ld\n", live);
  int (*control)(const char *, void *, size_t *, void *, size_t) = (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_DEFAULT, "mallctl");
  int (*property)(const char *, size_t *) = (int (*)(const char *, size_t *))dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty");
  size_t value = 0, length = sizeof(value);
  if (control != NULL) {
    uint64_t epoch = 1;
    size_t epoch_bytes = sizeof(epoch);
    control("epoch", &epoch, &epoch_bytes, &epoch, sizeof(epoch));
    if (control("stats.resident", &value, &length, NULL, 0) == 0) printf("resident %zu\n", value);
    if (control("stats.metadata", &value, &length, NULL, 0) == 0) printf("metadata %zu\n", value);
  } else if (property != NULL) {
    size_t unmapped = 0;
    if (property("generic.heap_size", &value) && property("tcmalloc.pageheap_unmapped_bytes", &unmapped))
      printf("resident %zu\n", value - unmapped);
  } else {
    /* glibc 2.33; nothing after it allocates or frees. */
    struct mallinfo2 (*info)(void) = (struct mallinfo2(*)(void))dlsym(RTLD_DEFAULT, "mallinfo2");
    setvbuf(stdin, NULL, _IONBF, 0);
    if (info != NULL) {
      const struct mallinfo2 said = info();
      printf("arenas %zu\nfree %zu\n", said.arena, said.fordblks);
    }
  }
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "tricks") == 0) {
    tricks(argv[2]);
  } else if (argc == 2 && strcmp(argv[1], "blocks") == 0) {
    use_allocator();
  } else {
    return 2;
  }
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) continue;
  return 0;
}
