/* An allocator whose nth allocation fails: glibc's own, behind these names. Preloaded after Cadastre, or alone.
 *
 *   FAILING_MALLOC=NTH:MARKER   the NTH allocation after main was entered gives NULL and ENOMEM; MARKER is created then
 *
 * Counted from main on: before it a preload's constructor may allocate (it opens a library), and the numbers would not be the bare
 * program's. After it Cadastre allocates nothing, which is what the comparison also proves.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static long nth; /* 0: none fails */
static long allocations;
static const char *marker;

static int fails(void) {
  if (nth == 0 || __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED) != nth) return 0;
  int fd = open(marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  errno = ENOMEM;
  return 1;
}

void *malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t bytes) { return fails() ? NULL : __libc_realloc(block, bytes); }
void *memalign(size_t alignment, size_t bytes) { return fails() ? NULL : __libc_memalign(alignment, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
void *valloc(size_t bytes) { return memalign(4096, bytes); }
void *pvalloc(size_t bytes) { return memalign(4096, (bytes + 4095) & ~(size_t)4095); }
int posix_memalign(void **out, size_t alignment, size_t bytes) {
  if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0) return EINVAL;
  int saved = errno;
  void *block = memalign(alignment, bytes);
  errno = saved;
  if (block == NULL) return ENOMEM;
  *out = block;
  return 0;
}
void free(void *block) { __libc_free(block); }
size_t malloc_usable_size(void *block) {
  static size_t (*real)(void *);
  if (real == NULL) real = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
  return real(block);
}

static int (*program_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **envp) {
  const char *plan = getenv("FAILING_MALLOC");
  if (plan != NULL && strchr(plan, ':') != NULL) {
    marker = strchr(plan, ':') + 1;
    nth = atol(plan);
  }
  return program_main(argc, argv, envp);
}

int __libc_start_main(int (*entry)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void *stack_end) {
  int (*real)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *) =
      (int (*)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *))dlsym(
          RTLD_NEXT, "__libc_start_main");
  program_main = entry;
  return real(counted_main, argc, argv, init, fini, loader_fini, stack_end);
}
