// Runs a program under a filter that kills for what services may not do (the set that systemd's @system-service leaves out): a filter
// that the program inherits and cannot see. hazards_jail PROGRAM ARGUMENT...
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

int main(int count, char** arguments) {
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
  struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
  if (count < 2) return 2;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0) {
    perror("seccomp");
    return 77;
  }
  execvp(arguments[1], arguments + 1);
  perror(arguments[1]);
  return 127;
}
