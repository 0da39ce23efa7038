#include "interposer/thread_state.h"

#include <signal.h>

#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {

extern "C" {
__thread ThreadState cadastre_thread_state;
}

namespace {
bool IsOnAlternateStack() {
  stack_t stack{};
  return IsSandboxed() ||  // the question might be punished
         RawSyscall(SYS_sigaltstack, 0, reinterpret_cast<long>(&stack)) != 0 || (stack.ss_flags & SS_ONSTACK) != 0;
}
}  // namespace

__attribute__((noinline, no_sanitize("address", "thread"))) bool StackMark::SeesAbandoned(const StackBounds& stack,
                                                                                          uint64_t at) const {
  const auto here = reinterpret_cast<uint64_t>(this);
  if (here < stack.low || here >= stack.high || at < stack.low || at >= stack.high) return false;
  const bool is_gone = here >= at || reinterpret_cast<const volatile StackMark*>(at)->word_ != kWord;
  return is_gone && !IsOnAlternateStack();
}

}  // namespace cadastre
