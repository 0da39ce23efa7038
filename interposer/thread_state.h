// What a hook keeps per thread, in one small initial-exec TLS block, and the two ways to reach it.
//
// All fields are zero at birth and zero must be safe: an ifunc resolver may call malloc before the loader copies the
// TLS image in, and what was written then is lost. countdown == 0 means "gap not drawn", never "due". The TLS offset
// itself is a relocated word: 0 means that the loader has not relocated us yet; then nothing here may be touched (fs:0
// is the thread control block). Thread- and signal-safety: owner thread only. `guard` tells a signal handler's hook
// that the thread is inside one already.
#ifndef CADASTRE_INTERPOSER_THREAD_STATE_H_
#define CADASTRE_INTERPOSER_THREAD_STATE_H_

#include <stdint.h>

#include "interposer/stack_capture.h"

namespace cadastre {

// What a thread is there for, as far as its samples say more because of it.
enum ThreadWork : uint8_t {
  kThreadWorkUnknown = 0,
  kThreadWorkAny = 1,
  kThreadWorkCompiler = 2,
  kThreadWorkReaper = 3,  // frees what the garbage collector found: HotSpot's Finalizer, Reference Handler, cleaners
};

enum ThreadNotes : uint8_t {
  kLacksBuffer = 1,   // could not be had, and is not asked for again
  kLacksRecord = 2,   // likewise
  kSawOwnWork = 4,    // an allocation came by under kGuardOwnWork
  kHasGivenName = 8,  // it has named itself
  kKeepsRecord = 16,  // it has its record for good
};

inline constexpr uint16_t kNameSettled = 0xffff;

struct ThreadState {
  uint64_t countdown;        // bytes until the slow path is due; must stay the first field (the hooks' fast path)
  uint64_t interval_bytes;   // with which the gap was drawn
  uint64_t random;           // splitmix64 state; 0 = not seeded
  StackBounds thread_stack;  // this thread's own stack; high == 0: not known yet
  uint64_t guard_at;         // where the StackMark of the ReentryGuard that set `guard` lies
  uint8_t guard;             // GuardValue
  uint8_t name_tries;        // for its whole name (thread_name.h)
  uint16_t name_wait;        // samples until the next one; kNameSettled = none
  uint32_t buffer;           // index + 1 of this thread's buffer; 0 = none
  uint32_t thread;           // index of the ThreadRecord; 0 = none
  uint8_t gap_is_due;        // the countdown ends in a sample (else it ends in a look at the header)
  uint8_t notes;             // ThreadNotes
  uint8_t until_look;        // records and removals until the profile's file is looked at again
  uint8_t work;              // ThreadWork
};
static_assert(sizeof(ThreadState) == 64, "static TLS is scarce: dlopen'ed and audit namespaces share it");

extern "C" __thread ThreadState cadastre_thread_state __attribute__((visibility("hidden"), tls_model("initial-exec")));

// The thread control block's address (fs:0), which is glibc's pthread_t too. At any time, in any thread.
__attribute__((always_inline)) inline uint64_t ThreadPointer() {
  uint64_t pointer;
  asm("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

// Distance from the thread pointer, or 0 while we are not relocated.
__attribute__((always_inline)) inline uint64_t ThreadStateOffset() {
  uint64_t offset;
  asm("movq cadastre_thread_state@gottpoff(%%rip), %0" : "=r"(offset));
  return offset;
}

// nullptr while we are not relocated.
__attribute__((always_inline)) inline ThreadState* CurrentThreadState() {
  uint64_t offset = ThreadStateOffset();
  if (offset == 0) return nullptr;
  return reinterpret_cast<ThreadState*>(ThreadPointer() + offset);
}

// The fast path: true if `bytes` stay below the countdown, which is then reduced; nothing shared is touched.
__attribute__((always_inline)) inline bool TrySkipSampleFast(uint64_t bytes) {
  uint64_t offset = ThreadStateOffset();
  if (__builtin_expect(offset == 0, 0)) return false;
  uint64_t countdown;
  asm volatile("movq %%fs:(%1), %0" : "=r"(countdown) : "r"(offset));
  if (__builtin_expect(countdown <= bytes, 0)) return false;
  countdown -= bytes;
  asm volatile("movq %0, %%fs:(%1)" : : "r"(countdown), "r"(offset) : "memory");
  return true;
}

enum GuardValue : uint8_t {
  kGuardOpen = 0,
  kGuardRecording = 1,  // a nested allocation is the program's: skipped and counted
  kGuardOwnWork = 2,    // a nested allocation is ours (the loader's, when we open libunwind): skipped
};

// A word on the stack that says "somebody is at work here": a signal handler may leave that work for good, by
// siglongjmp. Then the place is abandoned, which shows where a later mark lies at the same place or nearer to the root,
// or where the word has been overwritten. Only on the thread's own stack: on an alternate one, which may be an array in
// a frame near the root, nothing can be said.
class StackMark {
 public:
  // Returns where it lies, never 0.
  uint64_t Set() {
    word_ = kWord;
    asm volatile("" ::: "memory");
    return reinterpret_cast<uint64_t>(this);
  }
  void Clear() {
    asm volatile("" ::: "memory");
    word_ = 0;
  }

  // That of this thread which was set at `at` is abandoned, seen from this one. In thread_state.cc.
  bool SeesAbandoned(const StackBounds& stack, uint64_t at) const;

 private:
  static constexpr uint64_t kWord = 0xc0ffee5eed5afe1dull;

  uint64_t word_ = 0;
};

// Marks this thread as being inside the recorder. A nested attempt (a signal handler that allocates) fails, unless what
// it is nested in was abandoned.
class ReentryGuard {
 public:
  explicit ReentryGuard(ThreadState* state, GuardValue value = kGuardRecording) : state_(state) {
    entered_ = state->guard == kGuardOpen || mark_.SeesAbandoned(state->thread_stack, state->guard_at);
    if (entered_) {
      state->guard_at = mark_.Set();
      state->guard = value;
    }
    asm volatile("" ::: "memory");
  }
  ~ReentryGuard() {
    asm volatile("" ::: "memory");
    if (!entered_) return;
    state_->guard = kGuardOpen;
    mark_.Clear();
    asm volatile("" ::: "memory");
  }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;
  bool entered() const { return entered_; }

 private:
  ThreadState* state_;
  StackMark mark_;
  bool entered_;
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_THREAD_STATE_H_
