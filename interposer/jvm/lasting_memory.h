// Reads memory that, if it is there, stays while it is looked at: the own thread's structures, the classes of the boot
// loader, a method that is on our own stack. What is not certain is whether an address is one at all.
//
// A page is asked about (IsWordReadable) before the first read from it, a sixth of what the kernel takes for a copy.
// What may go away between the question and the read is for checked_read.h.
// Thread- and signal-safety: safe in hooks, errno is not touched; one system call for each new page, none in a sandbox.
// Errors: false; what was to be filled is then not to be used.
//
// Example:
//   LastingMemory memory;
//   uint16_t length;
//   if (!memory.Load(symbol, &length) || !memory.Read(symbol + 6, text, length)) return false;
#ifndef CADASTRE_INTERPOSER_JVM_LASTING_MEMORY_H_
#define CADASTRE_INTERPOSER_JVM_LASTING_MEMORY_H_

#include <stddef.h>
#include <stdint.h>

#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {

class LastingMemory {
 public:
  // bytes: at most a page.
  bool Read(uint64_t address, void* out, size_t bytes) {
    const uint64_t end = address + bytes;
    if (end < address || (bytes != 0 && (!IsThere(address) || !IsThere(end - 1)))) return false;
    __builtin_memcpy(out, reinterpret_cast<const void*>(address), bytes);
    return true;
  }

  template <typename Type>
  bool Load(uint64_t address, Type* value) {
    return Read(address, value, sizeof(Type));
  }

  // Is the page there that `address` lies in?
  bool IsThere(uint64_t address) {
    const uint64_t page = address & ~4095ull;
    for (const uint64_t known : known_pages_) {
      if (known == page + 1) return true;
    }
    if (IsSandboxed() || !IsWordReadable(page)) return false;
    known_pages_[next_++ % kKnownPages] = page + 1;
    return true;
  }

 private:
  static constexpr uint32_t kKnownPages = 8;  // a class, its constants and some names lie in that many

  uint64_t known_pages_[kKnownPages] = {};  // plus one; 0 = none
  uint32_t next_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_LASTING_MEMORY_H_
