// Reads memory that may not be there, or may go away meanwhile: never a fault, only a refusal.
//
// The kernel copies (process_vm_readv on the own process, Linux 3.2): no descriptor, no signal, no allocation.
// Where a container's filter forbids the call, or a kernel lacks it, nothing can be read. Thread- and signal-safety:
// safe in hooks, errno is not touched; one system call. In a sandbox no call is made. Errors: false; what was
// to be filled is then not to be used.
//
// Example:
//   uint64_t eetop; uint32_t name;
//   if (!CheckedRead({{object + 16, &eetop, 8}, {object + 20, &name, 4}})) return kLater;
#ifndef CADASTRE_INTERPOSER_JVM_CHECKED_READ_H_
#define CADASTRE_INTERPOSER_JVM_CHECKED_READ_H_

#include <stddef.h>
#include <stdint.h>

namespace cadastre {

struct CheckedPiece {
  uint64_t address;
  void* out;
  size_t bytes;
};

// All of the pieces, in this order and no other, or false.
bool CheckedRead(const CheckedPiece* pieces, size_t count);

template <size_t kCount>
bool CheckedRead(const CheckedPiece (&pieces)[kCount]) {
  return CheckedRead(pieces, kCount);
}

// One value.
template <typename Type>
bool CheckedLoad(uint64_t address, Type* value) {
  return CheckedRead({{address, value, sizeof(Type)}});
}

// As much of [address, address + bytes) as can be read from its beginning on. 0 = nothing.
size_t CheckedReadSome(uint64_t address, void* out, size_t bytes);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_CHECKED_READ_H_
