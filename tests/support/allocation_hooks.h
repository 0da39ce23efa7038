// For test preloads: malloc, calloc and realloc that show the caller's registers to oracle_allocation, as the product's
// slow paths do, and go on to glibc's own. To be included by one source file, which defines oracle_allocation.
#ifndef CADASTRE_TESTS_SUPPORT_ALLOCATION_HOOKS_H_
#define CADASTRE_TESTS_SUPPORT_ALLOCATION_HOOKS_H_

#include "interposer/stack_capture.h"

extern "C" __attribute__((visibility("hidden"))) void oracle_allocation(const cadastre::EntryRegisters* registers);

// Saves the argument registers, hands the caller's registers to oracle_allocation, and jumps to glibc's own function.
#define HOOK(name, real)                 \
  asm(".text\n.globl " name              \
      "\n"                               \
      ".type " name ", @function\n" name \
      ":\n"                              \
      ".cfi_startproc\n"                 \
      "pushq %rdi\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq %rsi\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq %r15\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq %r14\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq %r13\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq %r12\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq %rbx\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq %rbp\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "leaq 72(%rsp), %rax\n"            \
      "pushq %rax\n"                     \
      ".cfi_adjust_cfa_offset 8\n"       \
      "pushq 72(%rsp)\n"                 \
      ".cfi_adjust_cfa_offset 8\n"       \
      "movq %rsp, %rdi\n"                \
      "subq $8, %rsp\n"                  \
      ".cfi_adjust_cfa_offset 8\n"       \
      "call oracle_allocation\n"         \
      "addq $72, %rsp\n"                 \
      ".cfi_adjust_cfa_offset -72\n"     \
      "popq %rsi\n"                      \
      ".cfi_adjust_cfa_offset -8\n"      \
      "popq %rdi\n"                      \
      ".cfi_adjust_cfa_offset -8\n"      \
      "jmp " real                        \
      "@PLT\n"                           \
      ".cfi_endproc\n"                   \
      ".size " name ", .-" name "\n")
HOOK("malloc", "__libc_malloc");
HOOK("calloc", "__libc_calloc");
HOOK("realloc", "__libc_realloc");

#endif  // CADASTRE_TESTS_SUPPORT_ALLOCATION_HOOKS_H_
