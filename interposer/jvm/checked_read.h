// Reads memory that may not be there, or may go away meanwhile: never a fault, only a refusal.
//
// The kernel copies (process_vm_readv on the own process, Linux 3.2): no descriptor, no signal, no allocation.
// A process that was started under a filter (a systemd unit's SystemCallFilter=, a container's) may be killed for that
// call, and cannot ask what the filter allows: there /proc/self/mem is opened, read and closed, which are calls that
// the loader makes before any program runs. Where that is forbidden too nothing can be read, and it is not asked again.
// Thread- and signal-safety: safe in hooks, errno is not touched; one system call, under a filter three. In a sandbox
// that the process has put itself into no call is made.
// Errors: false; what was to be filled is then not to be used.
//
// Example:
//   uint64_t eetop;
//   if (!CheckedLoad(object + 16, &eetop)) return kLater;
#ifndef CADASTRE_INTERPOSER_JVM_CHECKED_READ_H_
#define CADASTRE_INTERPOSER_JVM_CHECKED_READ_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

namespace cadastre {

// All of the pieces, in this order and no other, or false. Piece i is as long in `to` as in `from`.
bool CheckedReadPieces(const iovec* to, const iovec* from, size_t count);

bool CheckedRead(uint64_t address, void* out, size_t bytes);

// One value.
template <typename Type>
bool CheckedLoad(uint64_t address, Type* value) {
  return CheckedRead(address, value, sizeof(Type));
}

// As much of [address, address + bytes) as can be read from its beginning on; bytes: at most 4096. 0 = nothing.
size_t CheckedReadSome(uint64_t address, void* out, size_t bytes);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_CHECKED_READ_H_
