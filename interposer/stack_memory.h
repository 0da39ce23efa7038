// The stack words that a walk may read.
//
// On the thread's own stack the limits are known. Anywhere else (alternate signal stack, coroutine, a thread whose
// bounds are not known) the memory above sp is made readable page by page with MADV_POPULATE_READ (Linux 5.14), which
// fails instead of faulting; on older kernels such a stack gives the leaf alone. No read ever leaves what is known or
// probed. Thread- and signal-safety: one object per walk, on its stack; a system call only on unknown stacks; errno is
// not touched.
#ifndef CADASTRE_INTERPOSER_STACK_MEMORY_H_
#define CADASTRE_INTERPOSER_STACK_MEMORY_H_

#include <stdint.h>
#include <sys/mman.h>

#include "interposer/raw_syscall.h"
#include "interposer/stack_capture.h"
#include "interposer/thread_buffer.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace cadastre {

// Where a walk stands.
struct StackFrame {
  uint64_t pc, sp, rbp;
  bool exact;  // interrupted by a signal: pc is the instruction itself, not a return address
};

// With less than this below sp only the leaf is taken: a capture may use 6 KiB (cold, with libunwind), and 2 KiB are
// left for a signal that comes meanwhile (its frame with AVX-512 state is larger, but then the program itself has no
// room for it either).
inline constexpr uint64_t kMinimumStackBytes = (6 + 2) << 10;

class StackMemory {
 public:
  // False if too little room is left below sp, or it cannot be told.
  bool Start(uint64_t sp, const StackBounds& thread_stack) {
    thread_stack_ = thread_stack;
    first_start_ = first_high_ = start_ = high_ = 0;
    if (!Switch(sp)) return false;
    if (!probing_) return sp - thread_stack.low >= kMinimumStackBytes;
    return IsReadable((sp - kMinimumStackBytes) & ~kPageMask, (sp + kPageMask) & ~kPageMask);
  }

  // The walk goes on at sp, perhaps on another stack (a signal frame was crossed).
  bool Switch(uint64_t sp) {
    if (first_high_ == 0) {
      first_start_ = start_;
      first_high_ = high_;
    }
    start_ = low_ = sp - kRedZoneBytes;
    probing_ = !(thread_stack_.low != 0 && sp >= thread_stack_.low && sp < thread_stack_.high);
    high_ = probing_ ? sp & ~kPageMask : thread_stack_.high;
    return !probing_ || Probe(sp + sizeof(uint64_t));
  }

  // Is there no room for a caller's frame above sp? The thread's entry point lies there: it has at most aligned sp and
  // pushed an argument or two (crt1's _start: 16 bytes below where the kernel set sp; the loader's _dl_start_user: 0).
  bool IsAtTop(uint64_t sp) const { return !probing_ && sp <= high_ && high_ - sp <= kEntryBytes; }

  // The stack is not the thread's own, or its bounds are not known.
  bool is_probing() const { return probing_; }

  // What Read may touch without asking anybody: [low, high).
  uint64_t low() const { return low_; }
  uint64_t high() const { return high_; }

  // The walk has left everything below sp.
  void Ascend(uint64_t sp) { low_ = sp; }

  // A word that the caller has found to lie in [low, high), aligned.
  __attribute__((always_inline)) static uint64_t LoadChecked(uint64_t address) { return Load(address); }

  __attribute__((always_inline)) bool Read(uint64_t address, uint64_t* value) {
    if (__builtin_expect((address & 7) != 0 || address < low_, 0)) return false;
    if (__builtin_expect(address > high_ - sizeof(uint64_t), 0) && !Probe(address + sizeof(uint64_t))) return false;
    *value = Load(address);
    return true;
  }

  // Also what the walk has left behind, for libunwind, which starts again at the leaf.
  bool ReadAgain(uint64_t address, uint64_t* value) {
    if (Read(address, value)) return true;
    const bool known = IsWithin(address, start_, high_) || IsWithin(address, first_start_, first_high_);
    if ((address & 7) != 0 || !known) return false;
    *value = Load(address);
    return true;
  }

 private:
  static constexpr uint64_t kPageMask = 4096 - 1;
  static constexpr uint64_t kProbeBytes = 16 << 10;
  static constexpr uint64_t kProbeLimitBytes = 64 << 20;  // larger than any sensible coroutine stack
  static constexpr uint64_t kEntryBytes = 32;
  static constexpr uint64_t kRedZoneBytes = 128;  // psABI 3.2.2: an interrupted leaf keeps values below sp

  __attribute__((no_sanitize("address", "thread"), noinline)) static uint64_t LoadUnchecked(uint64_t address) {
    return *reinterpret_cast<const volatile uint64_t*>(address);
  }
  __attribute__((always_inline)) static uint64_t Load(uint64_t address) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return LoadUnchecked(address);
#else
    return *reinterpret_cast<const volatile uint64_t*>(address);
#endif
  }

  static bool IsWithin(uint64_t address, uint64_t start, uint64_t end) {
    return end >= sizeof(uint64_t) && address >= start && address <= end - sizeof(uint64_t);
  }

  static bool IsReadable(uint64_t start, uint64_t end) {
    return start < end && !IsSandboxed() &&  // there the question might be punished
           RawSyscall(SYS_madvise, static_cast<long>(start), static_cast<long>(end - start), MADV_POPULATE_READ) == 0;
  }

  // Raises high_ until it covers `end`, in large steps first; the last steps find the very page where the mapping ends.
  __attribute__((noinline)) bool Probe(uint64_t end) {
    if (!probing_ || end < low_ || end - low_ > kProbeLimitBytes) return false;
    while (high_ < end) {
      if (IsReadable(high_, high_ + kProbeBytes)) {
        high_ += kProbeBytes;
      } else if (IsReadable(high_, high_ + kPageMask + 1)) {
        high_ += kPageMask + 1;
      } else {
        return false;
      }
    }
    return true;
  }

  StackBounds thread_stack_;
  uint64_t low_, high_;                // what Read may touch now: low_ rises with the walk, high_ while probing
  uint64_t start_;                     // where the walk came onto this stack
  uint64_t first_start_, first_high_;  // the stack that it began on, once it has left it
  bool probing_;
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_STACK_MEMORY_H_
