// What a thread asks before each record, as one word; and the page on which it lies, which the kernel wipes in a fork
// child, also where no atfork handler runs.
//
// The gate is open while this process is recorded, samples are frequent, the guard against a cut file stands
// (bus_guard.h) and malloc comes to us first. A thread passes so many times; then it asks the session again, which
// looks at the file. Closed where the kernel cannot wipe (before Linux 4.14).
// Thread- and signal-safety: plain words, from the first call of AlivePageMake on; before it the gate is closed.
//
// Example:
//   if (SessionGateIsOpen(&thread->until_look) || ...) ...
#ifndef CADASTRE_INTERPOSER_SESSION_GATE_H_
#define CADASTRE_INTERPOSER_SESSION_GATE_H_

#include <stdint.h>

namespace cadastre {

// False: no memory. Once.
bool AlivePageMake();
// False in a fork child, if the page can be wiped.
bool AlivePageIsAlive();
bool AlivePageCanBeWiped();

extern const uint32_t* g_session_gate;

// `until_look`: how often this thread may pass yet.
__attribute__((always_inline)) inline bool SessionGateIsOpen(uint8_t* until_look) {
  if (__atomic_load_n(g_session_gate, __ATOMIC_RELAXED) == 0 || *until_look == 0) return false;
  (*until_look)--;
  return true;
}

// Who opens asks afterwards whether it may still be open; who closes has said before why (both are full barriers).
void SessionGateOpen();
void SessionGateClose();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_SESSION_GATE_H_
