// Runs a program under a filter that it inherits and cannot see, as a service manager installs it.
//   hazards_jail kill PROGRAM ARGUMENT...   kills for what no service may do
//   hazards_jail allow PROGRAM ARGUMENT...  kills for all but what systemd's @system-service (and @default) allows
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

// The numbers of the set's system calls on x86-64, first and last of each run (systemd 252).
static const unsigned allowed[][2] = {
    {0, 26}, {28, 100}, {102, 102}, {104, 133}, {135, 135}, {137, 138}, {140, 152}, {157, 158}, {160, 160}, {162, 162},
    {186, 211}, {213, 226}, {228, 235}, {237, 245}, {247, 297}, {299, 299}, {302, 303}, {306, 312}, {314, 316}, {318, 319},
    {322, 328}, {332, 334}, {424, 427}, {434, 437}, {439, 441}, {449, 450}};

static int install(struct sock_filter *code, unsigned short count) {
  struct sock_fprog filter = {count, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0) return 0;
  perror("seccomp");
  return 77;
}

static int kill_some(void) {
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               KILL(SYS_process_vm_readv),
                               KILL(SYS_process_vm_writev),
                               KILL(SYS_ptrace),
                               KILL(SYS_kcmp),
                               KILL(SYS_pidfd_getfd),
                               KILL(SYS_perf_event_open),
                               KILL(SYS_bpf),
                               KILL(SYS_userfaultfd),
                               KILL(SYS_lookup_dcookie),
                               KILL(SYS_mount),
                               KILL(SYS_umount2),
                               KILL(SYS_pivot_root),
                               KILL(SYS_swapon),
                               KILL(SYS_reboot),
                               KILL(SYS_init_module),
                               KILL(SYS_settimeofday),
                               KILL(SYS_clock_settime),
                               KILL(SYS_adjtimex),
                               KILL(SYS_modify_ldt),
                               KILL(SYS_iopl),
                               KILL(SYS_ioperm),
                               KILL(SYS_acct),
                               KILL(SYS_quotactl),
                               KILL(SYS_kexec_load),
                               KILL(SYS_vhangup),
                               KILL(SYS_personality),
                               KILL(SYS_io_uring_setup),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  return install(code, sizeof(code) / sizeof(code[0]));
}

static int allow_some(void) {
  enum { kRanges = sizeof(allowed) / sizeof(allowed[0]) };
  struct sock_filter code[3 * kRanges + 2];
  unsigned short used = 0;
  code[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < kRanges; i++) {
    code[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, allowed[i][0], 0, 2);
    code[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, allowed[i][1], 1, 0);
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  return install(code, used);
}

int main(int count, char **arguments) {
  if (count < 3) return 2;
  const int error = strcmp(arguments[1], "allow") == 0 ? allow_some() : kill_some();
  if (error != 0) return error;
  execvp(arguments[2], arguments + 2);
  perror(arguments[2]);
  return 127;
}
