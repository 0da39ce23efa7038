// pthread_create: the new thread learns its own stack bounds before the program's function runs.
//
// Bounds cannot be asked for later: pthread_getattr_np allocates and takes locks. The start record comes from a small
// private pool, never from the program's heap; where the pool is empty the thread is created as the caller asked and
// its stack is found by probing. The trampoline ends in a tail jump, so it is no frame of the thread's stack.
#include <pthread.h>

#include "interposer/elf_lookup.h"
#include "interposer/hooks.h"
#include "interposer/session.h"
#include "interposer/thread_state.h"

namespace cadastre {
namespace {

using ThreadFunction = void* (*)(void*);
using CreateFunction = int (*)(pthread_t*, const pthread_attr_t*, ThreadFunction, void*);

struct ThreadStart {
  uint32_t taken;
  ThreadFunction function;
  void* argument;
  uint64_t stack_bytes, guard_bytes;
};

// Records are in use only between pthread_create and the first instructions of the thread.
constexpr uint32_t kStarts = 256;
ThreadStart starts[kStarts];
uint32_t cursor;
void* real_create;

// By look-up, not by reference: in glibc 2.34 these names moved to another library with a new version.
struct Attribute {
  const char* getter;
  int (*get)(const pthread_attr_t*, size_t*);
};
Attribute stack_size = {"pthread_attr_getstacksize", nullptr};
Attribute guard_size = {"pthread_attr_getguardsize", nullptr};

size_t Read(Attribute* attribute, const pthread_attr_t* attributes, size_t otherwise) {
  if (attributes == nullptr) return otherwise;
  auto* get = __atomic_load_n(&attribute->get, __ATOMIC_ACQUIRE);
  if (get == nullptr) {
    get = reinterpret_cast<decltype(get)>(FindLoadedFunction(attribute->getter));
    if (get == nullptr) return otherwise;
    __atomic_store_n(&attribute->get, get, __ATOMIC_RELEASE);
  }
  size_t value = 0;
  return get(attributes, &value) == 0 && value != 0 ? value : otherwise;
}

ThreadStart* TakeStart() {
  for (int tries = 0; tries < 16; tries++) {
    ThreadStart* start = &starts[__atomic_fetch_add(&cursor, 1, __ATOMIC_RELAXED) % kStarts];
    if (__atomic_exchange_n(&start->taken, 1, __ATOMIC_ACQUIRE) == 0) return start;
  }
  return nullptr;
}

void* RunThread(void* argument) {
  auto* start = static_cast<ThreadStart*>(argument);
  const ThreadFunction function = start->function;
  void* const function_argument = start->argument;
  ThreadState* thread = CurrentThreadState();
  if (start->stack_bytes != 0) {
    // glibc puts the thread control block (fs base) at the top of the block of stack_bytes, also in a stack that the
    // program provided.
    uint64_t top;
    asm("movq %%fs:0, %0" : "=r"(top));
    thread->thread_stack.high = top;
    thread->thread_stack.low = top - start->stack_bytes + start->guard_bytes;
  }
  __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);
  return function(function_argument);
}

}  // namespace
}  // namespace cadastre

CADASTRE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                                   void* argument) {
  using namespace cadastre;
  auto* real = reinterpret_cast<CreateFunction>(__atomic_load_n(&real_create, __ATOMIC_ACQUIRE));
  if (real == nullptr) {
    const link_map* library = NextLibraryWith("pthread_create");
    if (library == nullptr) return 38;  // ENOSYS
    real = reinterpret_cast<CreateFunction>(FindInLibrary(library, "pthread_create"));
    __atomic_store_n(&real_create, reinterpret_cast<void*>(real), __ATOMIC_RELEASE);
  }
  const SessionState state = SessionCurrentState();
  ThreadStart* start = state == SessionState::kOff || state == SessionState::kNew ? nullptr : TakeStart();
  if (start == nullptr) return real(thread, attributes, function, argument);
  start->function = function;
  start->argument = argument;
  start->stack_bytes = Read(&stack_size, attributes, DefaultThreadStackBytes());
  start->guard_bytes = Read(&guard_size, attributes, 4096);
  const int error = real(thread, attributes, &RunThread, start);
  if (error != 0) __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);
  return error;
}
