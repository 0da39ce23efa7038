// A program with an entry point of its own, without unwind tables, as -nostartfiles programs and old start files have.
#include <stdlib.h>

extern void* volatile early_block;
static void* volatile own_block;

__attribute__((noinline)) void allocate_own(void) { own_block = malloc(65432); }

__attribute__((used)) void run(void) {
  allocate_own();
  exit(early_block == NULL || own_block == NULL);
}

__asm__(".globl _start\n.type _start, @function\n_start:\n  xorl %ebp, %ebp\n  andq $-16, %rsp\n  call run\n  hlt\n"
        ".size _start, .-_start");
