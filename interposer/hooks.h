// What every hook file shares: the export attribute, and the entries by which a hook's slow path learns its caller's
// registers.
//
// A hook is: guard, real call, report. The fast path is a tail jump, so the caller's frame stays frame 1. The slow path
// is reached by a tail jump too, to a small assembly entry that finds the caller's registers untouched (nothing was
// pushed yet), stores them and calls the C++ function with a pointer to them as the fourth argument.
#ifndef CADASTRE_INTERPOSER_HOOKS_H_
#define CADASTRE_INTERPOSER_HOOKS_H_

#include <stddef.h>
#include <stdint.h>

#include "interposer/stack_capture.h"

#define CADASTRE_EXPORT extern "C" __attribute__((visibility("default")))
// Called from assembly of ours alone.
#define CADASTRE_HIDDEN extern "C" __attribute__((visibility("hidden"), used))

// Defines `entry`, which calls `function`(rdi, rsi, rdx, const EntryRegisters*) and returns what it returns.
// Stack: 8 registers and 8 bytes that keep it 16-byte aligned. Layout == struct EntryRegisters.
#define CADASTRE_SLOW_ENTRY(entry, function) CADASTRE_REGISTERS_ENTRY(entry, function, "movq %rsp, %rcx\n")

// The same for functions with more arguments: `function`(the entry's own arguments in registers, EntryRegisters). The
// registers are an argument by value: System V passes a structure of that size in memory, at the stack pointer, and
// there they lie.
#define CADASTRE_WIDE_ENTRY(entry, function) CADASTRE_REGISTERS_ENTRY(entry, function, "")

#define CADASTRE_REGISTERS_ENTRY(entry, function, pass_registers) \
  asm(".pushsection .text\n"                                      \
      ".globl " #entry                                            \
      "\n"                                                        \
      ".hidden " #entry                                           \
      "\n"                                                        \
      ".type " #entry                                             \
      ", @function\n"                                             \
      ".p2align 4\n" #entry                                       \
      ":\n"                                                       \
      ".cfi_startproc\n"                                          \
      "leaq 8(%rsp), %rax\n"                                      \
      "subq $72, %rsp\n"                                          \
      ".cfi_adjust_cfa_offset 72\n"                               \
      "movq %rax, 8(%rsp)\n"                                      \
      "movq 72(%rsp), %rax\n"                                     \
      "movq %rax, (%rsp)\n"                                       \
      "movq %rbp, 16(%rsp)\n"                                     \
      "movq %rbx, 24(%rsp)\n"                                     \
      "movq %r12, 32(%rsp)\n"                                     \
      "movq %r13, 40(%rsp)\n"                                     \
      "movq %r14, 48(%rsp)\n"                                     \
      "movq %r15, 56(%rsp)\n" pass_registers "call " #function    \
      "\n"                                                        \
      "addq $72, %rsp\n"                                          \
      ".cfi_adjust_cfa_offset -72\n"                              \
      "ret\n"                                                     \
      ".cfi_endproc\n"                                            \
      ".size " #entry ", .-" #entry                               \
      "\n"                                                        \
      ".popsection\n")

static_assert(sizeof(cadastre::EntryRegisters) == 64 && offsetof(cadastre::EntryRegisters, sp) == 8 &&
              offsetof(cadastre::EntryRegisters, rbp) == 16 && offsetof(cadastre::EntryRegisters, r15) == 56);

#endif  // CADASTRE_INTERPOSER_HOOKS_H_
