// Memory of our own for the tables that lead into the profile: address space that costs nothing until it is touched.
//
// Never given back. Thread- and signal-safety: one system call, nothing else. Errors: nullptr.
#ifndef CADASTRE_INTERPOSER_PRIVATE_MEMORY_H_
#define CADASTRE_INTERPOSER_PRIVATE_MEMORY_H_

#include <stdint.h>
#include <sys/mman.h>

#include "interposer/raw_syscall.h"

namespace cadastre {

// `bytes` of zeros.
template <typename Entry>
Entry* ReserveMemory(uint64_t bytes) {
  const long result = RawSyscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return IsSyscallError(result) ? nullptr : reinterpret_cast<Entry*>(result);
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_PRIVATE_MEMORY_H_
