// Captures the stack of the calling thread as raw frame words (profile_format.h, FrameTag), leaf first.
//
// Thread- and signal-safety: callable from any hook: no lock, no allocation, no loader lock, no system call on the
// usual path, no libc call that is not a plain memory function. Not re-entrant per thread: the caller holds the
// re-entry guard (a nested capture takes the leaf only). Stack use: at most 3 KiB where every pc is cached, 6 KiB
// otherwise; with less left it takes the leaf alone and says so in flags. Errors: none; what could not be walked is
// marked in flags (format::SiteFlags).
#ifndef CADASTRE_INTERPOSER_STACK_CAPTURE_H_
#define CADASTRE_INTERPOSER_STACK_CAPTURE_H_

#include <stdint.h>

namespace cadastre {

// The caller's registers at the moment it called the hook, as if the hook had just returned: pc is the return address,
// sp the value of rsp after the return. Callee-saved registers hold the caller's values.
struct EntryRegisters {
  uint64_t pc, sp, rbp, rbx, r12, r13, r14, r15;
};

// Depth limit: frames beyond it are cut from the root end and the stack is marked kSiteTruncatedDepth.
inline constexpr uint32_t kMaxFrames = 256;

// The thread's own stack; low == 0: not known. If sp lies in it, reads outside [sp, high) never happen. If not
// (alternate signal stack, coroutine), the memory above sp is probed (stack_memory.h). A walk that crosses a signal
// frame decides again with the interrupted sp.
struct StackBounds {
  uint64_t low, high;
};

class StackMemo;

// Fills frames[0..return value) and flags. capacity <= kMaxFrames. memo (stack_memo.h): the thread's own, for stacks
// that are captured often; the result is the same with and without.
uint32_t CaptureStack(const EntryRegisters& registers, const StackBounds& bounds, uint64_t* frames, uint32_t capacity,
                      uint32_t* flags, StackMemo* memo = nullptr);

// The same for who may not need the frames: true, and nothing in *count, where they are all in the memo
// (StackMemo::Words), false where frames[0..*count) has them. Room for kMaxFrames.
bool CaptureInMemo(const EntryRegisters& registers, const StackBounds& bounds, uint64_t* frames, uint32_t* count,
                   uint32_t* flags, StackMemo* memo);

// Only the leaf (registers.pc) as a frame word.
uint64_t CaptureLeaf(const EntryRegisters& registers);

// From the constructor, outside any hook: loads libunwind (private copy, RTLD_LOCAL) if it is there. Without it rules
// alone serve.
void StackCaptureInit();

// Once there is a profile and before a sandbox: memory for the rules. Without it the first capture asks for it.
void StackCaptureOpen();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_STACK_CAPTURE_H_
