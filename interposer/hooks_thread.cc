// The thread functions: what a thread's stack and name are, and where a JVM keeps its idea of the thread.
//
// pthread_create: who creates the thread is recorded, and the new thread learns its own stack bounds before the
// program's function runs.
//
// Bounds cannot be asked for later: pthread_getattr_np allocates and takes locks. The start record comes from a small
// private pool, never from the program's heap; where the pool is empty the thread is created as the caller asked and
// its stack is found by probing. The trampoline ends in a tail jump, so it is no frame of the thread's stack.
// pthread_key_create: the first key that libjvm makes holds its Thread* (jvm/).
// pthread_setname_np: a thread that has given a sample already gets its new name in the profile too. HotSpot calls it
// in the state in which no collector may pause or move anything, with the name just read: the best moment to read it.
#include <pthread.h>

#include "interposer/elf_lookup.h"
#include "interposer/hooks.h"
#include "interposer/jvm/jvm.h"
#include "interposer/recorder.h"
#include "interposer/session.h"
#include "interposer/thread_name.h"
#include "interposer/thread_state.h"
#include "interposer/thread_table.h"

namespace cadastre {
namespace {

using ThreadFunction = void* (*)(void*);
using CreateFunction = int(pthread_t*, const pthread_attr_t*, ThreadFunction, void*);

struct ThreadStart {
  uint32_t taken;
  ThreadFunction function;
  void* argument;
  uint64_t stack_bytes, guard_bytes;
  uint32_t record;  // ThreadRecord; 0 = none
};

// Records are in use only between pthread_create and the first instructions of the thread.
constexpr uint32_t kStarts = 256;
alignas(4096) ThreadStart starts[kStarts];
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
    const uint64_t top = ThreadPointer();
    thread->thread_stack.high = top;
    thread->thread_stack.low = top - start->stack_bytes + start->guard_bytes;
    if (start->record != 0 && SessionFileIsWhole()) {
      // The block ends with the page of the control block, and glibc puts the guard beside the bytes asked for.
      const uint64_t end = (top | 4095) + 1;
      ThreadRecordStart(thread, start->record, {end - start->stack_bytes - start->guard_bytes, end});
    }
  }
  __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);
  return function(function_argument);
}

void* real_key_create;
void* real_set_name;
constexpr int kNotThere = 38;  // ENOSYS

}  // namespace
}  // namespace cadastre

CADASTRE_EXPORT int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) {
  using namespace cadastre;
  auto* real = NextFunction<int(pthread_key_t*, void (*)(void*))>(&real_key_create, "pthread_key_create");
  if (real == nullptr) return kNotThere;
  const int error = real(key, destructor);
  const SessionState state = SessionCurrentState();
  if (error == 0 && state != SessionState::kOff && state != SessionState::kNew) {
    SessionFileIsWhole();  // what is learnt of a JVM goes into the header
    JvmNoteThreadKey(__builtin_return_address(0), *key);
  }
  return error;
}

CADASTRE_EXPORT int pthread_setname_np(pthread_t thread, const char* name) {
  using namespace cadastre;
  auto* real = NextFunction<int(pthread_t, const char*)>(&real_set_name, "pthread_setname_np");
  if (real == nullptr) return kNotThere;
  const int error = real(thread, name);
  ThreadState* state = CurrentThreadState();
  if (error == 0 && thread == ThreadPointer() && state != nullptr && SessionFileIsWhole()) {
    ReentryGuard guard(state);
    if (guard.entered()) {
      ThreadNameChanged(state, name);
      ThreadNameUpdate(state);
    }
  }
  return error;
}

CADASTRE_WIDE_ENTRY(cadastre_pthread_create_entry, cadastre_pthread_create_seen);
CADASTRE_HIDDEN int cadastre_pthread_create_entry(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

CADASTRE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                                   void* argument) {
  return cadastre_pthread_create_entry(thread, attributes, function, argument);
}

CADASTRE_HIDDEN int cadastre_pthread_create_seen(pthread_t* thread, const pthread_attr_t* attributes,
                                                 void* (*function)(void*), void* argument,
                                                 cadastre::EntryRegisters registers) {
  using namespace cadastre;
  auto* real = NextFunction<CreateFunction>(&real_create, "pthread_create");
  if (real == nullptr) return kNotThere;
  const SessionState state = SessionCurrentState();
  ThreadStart* start = state == SessionState::kOff || state == SessionState::kNew ? nullptr : TakeStart();
  if (start == nullptr) return real(thread, attributes, function, argument);
  start->function = function;
  start->argument = argument;
  start->stack_bytes = Read(&stack_size, attributes, DefaultThreadStackBytes());
  start->guard_bytes = Read(&guard_size, attributes, 4096);
  start->record = RecordThreadCreation(registers);
  const uint32_t record = start->record;
  const int error = real(thread, attributes, &RunThread, start);
  if (error == 0) return 0;
  if (record != 0) ThreadRecordGiveBack(record);
  __atomic_store_n(&start->taken, 0, __ATOMIC_RELEASE);
  return error;
}
