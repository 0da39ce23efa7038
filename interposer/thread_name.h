// What a thread is called, as the profile has it: the kernel's 15 characters, and the whole name where a JVM knows
// more.
//
// The name is read once, with the first sample that the thread gives as one of the JVM's, and anew when the thread
// renames itself. Where it cannot be read now (a collector is at work) one sample goes by before the next try, then
// two, four, and so on up to 1,024. Names are interned; all together they take at most an eighth of the profile's
// strings, and a thread that comes with a new one after that keeps the kernel's. Thread- and signal-safety: owner
// thread only, under the re-entry guard. A try is seven system calls, or one where the kernel had no need to cut the
// name; in a sandbox there is none. Errors: the record keeps the kernel's name.
#ifndef CADASTRE_INTERPOSER_THREAD_NAME_H_
#define CADASTRE_INTERPOSER_THREAD_NAME_H_

#include "interposer/thread_state.h"

namespace cadastre {

// With each sample and each change of the name, once the thread has its record: what it is called, and what it works
// for (ThreadWork).
void ThreadNameUpdateSlow(ThreadState* state);
inline void ThreadNameUpdate(ThreadState* state) {
  if (state->name_wait != kNameSettled) ThreadNameUpdateSlow(state);
}

// Does a thread of a JVM free blocks only because the garbage collector found their owners? One system call for each
// name that the thread has, with its first free.
bool ThreadIsReaperSlow(ThreadState* state);
inline bool ThreadIsReaper(ThreadState* state) {
  return state->work == kThreadWorkUnknown ? ThreadIsReaperSlow(state) : state->work == kThreadWorkReaper;
}

// The thread tells the kernel that it is called so; the whole name comes with the next update. state may be nullptr.
void ThreadNameChanged(ThreadState* state, const char* name);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_THREAD_NAME_H_
