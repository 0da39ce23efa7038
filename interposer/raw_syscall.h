// System calls without libc: they leave errno alone, cannot be interposed and allocate nothing.
//
// Returns the kernel's value: -errno on failure.
// Thread- and signal-safety: safe everywhere, before main and in a fork child too.
#ifndef CADASTRE_INTERPOSER_RAW_SYSCALL_H_
#define CADASTRE_INTERPOSER_RAW_SYSCALL_H_

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>

namespace cadastre {

#ifdef CADASTRE_FAULTS
// Only in the preload of tests/faults: the negative error that this call is to give instead of being made, or 0.
long PlannedFault(long number);
#endif

inline long RawSyscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
#ifdef CADASTRE_FAULTS
  if (const long error = PlannedFault(number); error != 0) return error;
#endif
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

// Can the word at `address` be read? The kernel copies a signal mask from there and then finds that it is told to do
// with it what it does not know: nothing changes. Unlike mincore it is a call that allow lists of services contain.
inline bool IsWordReadable(uint64_t address) {
  constexpr long kNoSuchOperation = -1;
  return RawSyscall(SYS_rt_sigprocmask, kNoSuchOperation, static_cast<long>(address), 0, 8) == -EINVAL;
}

inline bool IsSyscallError(long result) { return static_cast<unsigned long>(result) > -4096ul; }

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_RAW_SYSCALL_H_
