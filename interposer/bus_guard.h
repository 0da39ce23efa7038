// SIGBUS, where the profile is touched without a pause. The live file belongs to whoever may write to it, and one who
// cuts it (`> FILE`) takes pages away that are being written: a look before each touch (ProfileIsWhole) leaves a
// microsecond, and at interval 1 a busy program spends all of its time in such microseconds. So from 10,000 touches a
// second on (a cut would kill with a chance of 1 %) the kernel's action for SIGBUS is ours. A fault in the profile ends
// the recording and nothing else; every other SIGBUS gets what the program has asked for, with the flags and the mask
// that it has asked for, and the program sees its own action when it asks.
//
// Below that rate no signal is taken.
//
// What is left: a thread that blocks SIGBUS, or a program that sets its action by a system call of its own, is killed
// by such a cut.
//
// Thread- and signal-safety: all of it is lock-free and may be called anywhere, also between vfork and exec: a child
// that shares our memory changes the kernel's action for itself and nothing here.
// Source of what the kernel does with an action: sigaction(2), signal(7).
#ifndef CADASTRE_INTERPOSER_BUS_GUARD_H_
#define CADASTRE_INTERPOSER_BUS_GUARD_H_

#include <signal.h>

namespace cadastre {

// Called in the signal handler, with the address that could not be touched. True: it was ours and may be touched now.
using TakesFault = bool (*)(const void* address);

// Nothing is taken yet. To be called once, before the first touch is noted.
void BusGuardPrepare(TakesFault takes);

// The profile is about to be touched. The 10,000th time within a second starts the guard: from then on faults come to
// `takes` first (where SIGBUS is ignored, once it no longer is).
void BusGuardNoteTouch();

// It stands, or cannot.
bool BusGuardIsDecided();
bool BusGuardIsOn();

// sigaction(SIGBUS, action, old), as the program sees it.
int BusGuardSetAction(const struct sigaction* action, struct sigaction* old);

// After another function of libc's has set the action in its own way: what is in the kernel becomes the program's, and
// ours comes before it again. Returns the handler that the program had, if `result` (what that function returned) is
// ours; else `result`.
sighandler_t BusGuardAdopt(sighandler_t result);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_BUS_GUARD_H_
