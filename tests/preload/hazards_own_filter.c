// A program that takes system calls away from itself and goes on allocating, or only asks whether it could, as libseccomp does.
// hazards_own_filter by-name|by-number|ask
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NI __attribute__((noinline))
#define ALLOW(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

enum { kBlocks = 2000, kDepths = 50 };
static void *blocks[kBlocks];

NI void *site_after(size_t bytes) { return malloc(bytes); }

// Many stacks: what is recorded of them must have room.
NI void at_depth(int depth, int i) {
  if (depth > 0) return at_depth(depth - 1, i);
  blocks[i] = site_after(2003);
}

static long install(const char *how) {
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               ALLOW(SYS_mmap),
                               ALLOW(SYS_munmap),
                               ALLOW(SYS_mremap),
                               ALLOW(SYS_mprotect),
                               ALLOW(SYS_brk),
                               ALLOW(SYS_write),
                               ALLOW(SYS_exit_group),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
  if (strcmp(how, "ask") == 0) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL);
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL);
    return 0;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return strcmp(how, "by-name") == 0 ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0)
                                     : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter);
}

int main(int count, char **arguments) {
  if (count != 2) return 2;
  free(malloc(1));  // glibc's first malloc asks for random bytes
  if (install(arguments[1]) != 0) return 77;
  for (int i = 0; i < kBlocks; i++) at_depth(i % kDepths, i);
  for (int i = 0; i < 100; i++) {
    void *mapping = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapping = mremap(mapping, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
    munmap(mapping, 2 << 20);
  }
  for (int i = 0; i < kBlocks / 2; i++) free(blocks[i]);
  static const char kText[] = "ALLOC site_after count=2000 bytes=4006000 live=1000 livebytes=2003000\n";
  if (write(1, kText, sizeof(kText) - 1) < 0) return 1;
  _exit(5);
}
