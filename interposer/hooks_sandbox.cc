// prctl and syscall: pure tail jumps, with two exceptions. A mapping call by number goes on in its hook
// (hooks_mmap.cc). And when a seccomp filter is about to be installed, afterwards nothing may be opened or asked
// (gettid, openat and readlink may be punished with death), so the profile, this thread's buffer and libunwind are made
// ready just before: a file may exist before the first due sample. A thread that renames itself by prctl gets its new
// name in the profile; its name is looked at when the kernel has taken it, and not before: it may lie where there is
// nothing.
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "interposer/elf_lookup.h"
#include "interposer/hooks.h"
#include "interposer/process_facts.h"
#include "interposer/session.h"
#include "interposer/stack_unwind.h"
#include "interposer/thread_name.h"
#include "interposer/thread_state.h"

static_assert(SYS_mmap == 9 && SYS_mprotect == 10 && SYS_munmap == 11 && SYS_mremap == 25 && SYS_shmat == 30 &&
              SYS_shmdt == 67);
static_assert(SYS_seccomp == 317 && SYS_prctl == 157 && PR_SET_SECCOMP == 22 && SECCOMP_SET_MODE_STRICT == 0 &&
              SECCOMP_SET_MODE_FILTER == 1 && PR_SET_TSC == 26 && PR_TSC_SIGSEGV == 2);

extern "C" {
__attribute__((visibility("hidden"), used)) void* cadastre_real_syscall;
__attribute__((visibility("hidden"), used)) void* cadastre_real_prctl;
}

// The first arguments of prctl, or of syscall, which begin with its number.
CADASTRE_HIDDEN void cadastre_before_sandbox(long first, long second, long third, long fourth) {
  bool is_strict, is_filter;
  if (first == SYS_seccomp) {  // operation, flags, program
    is_strict = second == SECCOMP_SET_MODE_STRICT && third == 0;
    is_filter = second == SECCOMP_SET_MODE_FILTER && fourth != 0;
  } else {  // PR_SET_SECCOMP, mode, program
    const long mode = first == SYS_prctl ? third : second, program = first == SYS_prctl ? fourth : third;
    is_strict = mode == SECCOMP_MODE_STRICT;
    is_filter = mode == SECCOMP_MODE_FILTER && program != 0;
  }
  if (!is_strict && !is_filter) return;  // asks, as libseccomp does, whether there is such a thing
  cadastre::StackUnwindPrepare();
  cadastre::SessionBeforeSandbox();
  // Strict mode takes all system calls away, and the time-stamp counter, which the vDSO's clocks read.
  if (is_strict) cadastre::StopClocks();
}

// prctl(PR_SET_TSC, PR_TSC_SIGSEGV): from here on the counter is a signal.
CADASTRE_HIDDEN void cadastre_before_no_counter() { cadastre::StopClocks(); }

namespace {
void Resolve(const char* name, void** slot) {
  __atomic_store_n(slot, cadastre::FindNextFunction(name), __ATOMIC_RELEASE);
}
}  // namespace

CADASTRE_HIDDEN void cadastre_resolve_sandbox_hooks() {
  Resolve("syscall", &cadastre_real_syscall);
  Resolve("prctl", &cadastre_real_prctl);
}

CADASTRE_HIDDEN int cadastre_rename(int option, const char* name, unsigned long c, unsigned long d, unsigned long e) {
  using namespace cadastre;
  using Prctl = int (*)(int, const char*, unsigned long, unsigned long, unsigned long);
  if (__atomic_load_n(&cadastre_real_prctl, __ATOMIC_ACQUIRE) == nullptr) cadastre_resolve_sandbox_hooks();
  const int error = reinterpret_cast<Prctl>(cadastre_real_prctl)(option, name, c, d, e);
  if (error == 0 && SessionFileIsWhole()) ThreadNameChanged(CurrentThreadState(), name);
  return error;
}

// Calls `function` with every argument register kept; the stack argument of syscall(2) stays where it is for the tail
// jump.
asm(".pushsection .text\n"
    ".macro cadastre_call_keeping_arguments function\n"
    "pushq %rdi\n .cfi_adjust_cfa_offset 8\n"
    "pushq %rsi\n .cfi_adjust_cfa_offset 8\n"
    "pushq %rdx\n .cfi_adjust_cfa_offset 8\n"
    "pushq %rcx\n .cfi_adjust_cfa_offset 8\n"
    "pushq %r8\n .cfi_adjust_cfa_offset 8\n"
    "pushq %r9\n .cfi_adjust_cfa_offset 8\n"
    "subq $8, %rsp\n .cfi_adjust_cfa_offset 8\n"
    "call \\function\n"
    "addq $8, %rsp\n .cfi_adjust_cfa_offset -8\n"
    "popq %r9\n .cfi_adjust_cfa_offset -8\n"
    "popq %r8\n .cfi_adjust_cfa_offset -8\n"
    "popq %rcx\n .cfi_adjust_cfa_offset -8\n"
    "popq %rdx\n .cfi_adjust_cfa_offset -8\n"
    "popq %rsi\n .cfi_adjust_cfa_offset -8\n"
    "popq %rdi\n .cfi_adjust_cfa_offset -8\n"
    ".endm\n"
    ".macro cadastre_jump_to_real slot\n"
    "movq \\slot(%rip), %rax\n"
    "testq %rax, %rax\n"
    "jne 9f\n"
    "cadastre_call_keeping_arguments cadastre_resolve_sandbox_hooks\n"
    "movq \\slot(%rip), %rax\n"
    "9: jmp *%rax\n"
    ".endm\n"

    ".globl syscall\n.type syscall, @function\n.p2align 4\n"
    "syscall:\n.cfi_startproc\n"
    "cmpq $9, %rdi\n je 10f\n"  // the mapping calls, as if they had been made by name
    "cmpq $10, %rdi\n je 11f\n"
    "cmpq $11, %rdi\n je 12f\n"
    "cmpq $25, %rdi\n je 13f\n"
    "cmpq $30, %rdi\n je 14f\n"
    "cmpq $67, %rdi\n je 15f\n"
    "cmpq $317, %rdi\n"  // SYS_seccomp with an operation that installs
    "jne 1f\n"
    "cmpq $1, %rsi\n"
    "ja 3f\n"
    "jmp 2f\n"
    "1: cmpq $157, %rdi\n"  // SYS_prctl, PR_SET_SECCOMP
    "jne 3f\n"
    "cmpq $26, %rsi\n"
    "je 16f\n"
    "cmpq $22, %rsi\n"
    "jne 3f\n"
    "2: cadastre_call_keeping_arguments cadastre_before_sandbox\n"
    "3: cadastre_jump_to_real cadastre_real_syscall\n"
    ".macro cadastre_jump_by_name function\n"
    "movq %rsi, %rdi\n"
    "movq %rdx, %rsi\n"
    "movq %rcx, %rdx\n"
    "movq %r8, %rcx\n"
    "movq %r9, %r8\n"
    "movq 8(%rsp), %r9\n"
    "jmp \\function\n"
    ".endm\n"
    "10: cadastre_jump_by_name cadastre_mmap_by_number\n"
    "11: cadastre_jump_by_name cadastre_mprotect_by_number\n"
    "12: cadastre_jump_by_name cadastre_munmap_by_number\n"
    "13: cadastre_jump_by_name cadastre_mremap_by_number\n"
    "14: cadastre_jump_by_name cadastre_shmat_by_number\n"
    "15: cadastre_jump_by_name cadastre_shmdt_by_number\n"
    "16: cmpq $2, %rdx\n"  // PR_SET_TSC, PR_TSC_SIGSEGV
    "jne 3b\n"
    "cadastre_call_keeping_arguments cadastre_before_no_counter\n"
    "jmp 3b\n"
    ".cfi_endproc\n.size syscall, .-syscall\n"

    ".globl prctl\n.type prctl, @function\n.p2align 4\n"
    "prctl:\n.cfi_startproc\n"
    "cmpl $15, %edi\n"  // PR_SET_NAME
    "je cadastre_rename\n"
    "cmpl $26, %edi\n"
    "je 4f\n"
    "cmpl $22, %edi\n"
    "jne 3f\n"
    "cadastre_call_keeping_arguments cadastre_before_sandbox\n"
    "3: cadastre_jump_to_real cadastre_real_prctl\n"
    "4: cmpq $2, %rsi\n"  // PR_SET_TSC, PR_TSC_SIGSEGV
    "jne 3b\n"
    "cadastre_call_keeping_arguments cadastre_before_no_counter\n"
    "jmp 3b\n"
    ".cfi_endproc\n.size prctl, .-prctl\n"
    ".popsection\n");
