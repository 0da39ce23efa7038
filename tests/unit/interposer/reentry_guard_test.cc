// The recorder is entered once at a time in a thread, however it is left, and wherever a handler runs that interrupts
// it.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include <functional>

#include "interposer/thread_state.h"
#include "tests/support/catch.h"

using namespace cadastre;

namespace {

ThreadState* ThisThread() {
  ThreadState* state = CurrentThreadState();
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t bytes = 0;
  REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  state->thread_stack = {reinterpret_cast<uint64_t>(low), reinterpret_cast<uint64_t>(low) + bytes};
  return state;
}

__attribute__((noinline)) bool CanEnter(ThreadState* state) {
  ReentryGuard guard(state);
  return guard.entered();
}

// Calls `then` inside the recorder, some way down the stack.
__attribute__((noinline)) bool EnterDeep(ThreadState* state, int depth, const std::function<void()>& then) {
  volatile char room[512];
  room[0] = static_cast<char>(depth);
  if (depth > 0) return EnterDeep(state, depth - 1, then) && room[0] == static_cast<char>(depth);
  ReentryGuard guard(state);
  then();
  return guard.entered();
}

sigjmp_buf g_back;
ThreadState* g_state;
volatile int g_entered;

void Ask(int) { g_entered = CanEnter(g_state); }

}  // namespace

TEST_CASE("A second entry further down fails, and the next one after the first has left does not", "[reentry_guard]") {
  ThreadState* state = ThisThread();
  bool nested = true;
  CHECK(EnterDeep(state, 3, [&] { nested = CanEnter(state); }));
  CHECK_FALSE(nested);
  CHECK(CanEnter(state));
}

TEST_CASE("Who leaves by siglongjmp leaves the recorder open", "[reentry_guard]") {
  ThreadState* state = ThisThread();
  for (int depth : {0, 3, 20}) {
    if (sigsetjmp(g_back, 1) == 0) EnterDeep(state, depth, [] { siglongjmp(g_back, 1); });
    CHECK(CanEnter(state));
  }
}

TEST_CASE("A handler on an alternate stack does not enter, wherever that stack lies", "[reentry_guard]") {
  g_state = ThisThread();
  char on_the_stack[64 << 10];  // nearer to the root than the frames that it interrupts
  static char elsewhere[64 << 10];
  struct sigaction action {
  }, former{};
  action.sa_handler = Ask;
  action.sa_flags = SA_ONSTACK;
  REQUIRE(sigaction(SIGUSR1, &action, &former) == 0);
  for (char* place : {on_the_stack, elsewhere}) {
    stack_t stack{}, former_stack{};
    stack.ss_sp = place;
    stack.ss_size = 64 << 10;
    REQUIRE(sigaltstack(&stack, &former_stack) == 0);
    g_entered = 1;
    CHECK(EnterDeep(g_state, 3, [] { raise(SIGUSR1); }));
    CHECK_FALSE(g_entered);
    sigaltstack(&former_stack, nullptr);
  }
  sigaction(SIGUSR1, &former, nullptr);
  CHECK(CanEnter(g_state));
}
