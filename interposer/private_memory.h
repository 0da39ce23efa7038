// Memory of our own for the tables that lead into the profile: address space that costs nothing until it is touched.
//
// Never given back. Where it lies stands in the profile (format::Header::own_memory), so that the RSS ledger can tell
// it from the program's. Thread- and signal-safety: one system call, atomics. Errors: nullptr.
#ifndef CADASTRE_INTERPOSER_PRIVATE_MEMORY_H_
#define CADASTRE_INTERPOSER_PRIVATE_MEMORY_H_

#include <stdint.h>
#include <sys/mman.h>

#include "interposer/profile_format.h"
#include "interposer/raw_syscall.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23  // Linux 5.14
#endif

namespace cadastre {

// Noted before there is a profile; copied into it by NoteOwnMemoryIn.
inline format::OwnMemory own_memory[format::kOwnMemoryRanges];
inline uint32_t own_memory_count;
inline format::OwnMemory* own_memory_in_profile;

// Beyond kOwnMemoryRanges it is not noted: the ledger does not know whose it is then.
inline void NoteOwnMemory(uint64_t start, uint64_t bytes) {
  const uint32_t index = __atomic_fetch_add(&own_memory_count, 1, __ATOMIC_RELAXED);
  if (index >= format::kOwnMemoryRanges) return;
  own_memory[index] = {start, bytes};
  format::OwnMemory* in_profile = __atomic_load_n(&own_memory_in_profile, __ATOMIC_SEQ_CST);
  if (in_profile != nullptr) in_profile[index] = {start, bytes};
}

// What comes later is noted there at once. nullptr: the profile goes.
inline void NoteOwnMemoryIn(format::OwnMemory* in_profile) {
  __atomic_store_n(&own_memory_in_profile, in_profile, __ATOMIC_SEQ_CST);
  if (in_profile == nullptr) return;
  for (uint32_t i = 0; i < format::kOwnMemoryRanges; i++) in_profile[i] = own_memory[i];
}

// Makes whole pages present that are soon touched, all of them, here and there: one call instead of two faults for each
// page that is read first. An older kernel leaves it at the faults.
inline void MakePresent(void* begin, uint64_t bytes) {
  RawSyscall(SYS_madvise, reinterpret_cast<long>(begin), static_cast<long>(bytes), MADV_POPULATE_WRITE);
}

// `bytes` of zeros.
template <typename Entry>
Entry* ReserveMemory(uint64_t bytes) {
  const long result = RawSyscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (IsSyscallError(result)) return nullptr;
  NoteOwnMemory(static_cast<uint64_t>(result), bytes);
  return reinterpret_cast<Entry*>(result);
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_PRIVATE_MEMORY_H_
