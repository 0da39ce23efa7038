// The session: from "the library is mapped" to "this process is recorded", and what fork, a sandbox and the exit do to
// it. One enum of states.
//
//   kNew ──Prepare──> kArmed ──first due sample──> kRecording
//                └──> kOff (another program's name, setuid, children=no, `cadastre` itself, no file could be made)
// Prepare runs at the first allocation or in the constructor, whichever comes first; it makes no file. Open makes the
// file. A fork child is kOff at once: its atfork handler maps anonymous memory over the profile, and where no handler
// runs (_Fork) a page that fork wipes says so. Thread- and signal-safety: every function may be called from any thread;
// each transition is made by one of them. Errors: kOff, and silence (see
// ProfileLeaveReason). An option that is not understood is one warning on stderr, in the first process that has it.
#ifndef CADASTRE_INTERPOSER_SESSION_H_
#define CADASTRE_INTERPOSER_SESSION_H_

#include <stdint.h>

#include "interposer/options.h"
#include "interposer/session_gate.h"

namespace cadastre {

enum class SessionState : uint32_t { kNew, kPreparing, kArmed, kOpening, kRecording, kOff };

SessionState SessionCurrentState();

// kNew -> kArmed or kOff. The real allocator must be resolved.
void SessionPrepare();

// kArmed -> kRecording: creates the profile. False: not recording (yet): another thread is at it, or it failed.
bool SessionOpen();

// Recording, and this is the process that the profile belongs to.
bool SessionIsRecording();

// Recording, and the file has all its bytes. To be asked once at the door of everything that touches the profile: where
// somebody has cut the file short, its pages are gone and a touch would be a SIGBUS. Then recording ends for good. What
// is cut between this answer and the touch is not seen.
// The file is looked at each time, and about 1 us passes until the touch: at R records, removals and mapping calls a
// second a cut kills with a chance of R * 1 us, one in 1,000 at 1,000 a second (at 512 KiB: 250 MB/s are allocated and
// freed). So ask after a call that may take its time, not before it. From 10,000 a second on bus_guard.h stands.
bool SessionFileIsWhole();

// The same for a thread that records or frees what was recorded. Where samples are frequent and the guard stands, the
// file is looked at every 64th time of the thread, and once more after each tick of the kernel (who notices it makes
// its until_look 0). What else must be asked is then one word (session_gate.h).
bool SessionFileIsWholeSlow(uint8_t* until_look);
__attribute__((always_inline)) inline bool SessionFileIsWhole(uint8_t* until_look) {
  return SessionGateIsOpen(until_look) || SessionFileIsWholeSlow(until_look);
}

// Mean bytes between samples now: as started, doubled where memory ran short, or as set from outside. *is_paused: from
// outside, too.
uint64_t SessionInterval(bool* is_paused);
bool SessionIsPaused();

// A sample was recorded. Where the live table fills, the interval doubles (not in exact mode), and the samples that are
// there are thinned to it, a few at each call (live_thinning.h).
void SessionNoteFill(uint64_t* random);

// Seed of one more thread's random numbers. Never 0.
uint64_t SessionThreadSeed();

// Nanoseconds since the session was prepared (CLOCK_MONOTONIC through the vDSO; no system call).
uint64_t SessionNow();
// When a sample was taken: SessionNow(), and as of the kernel's last tick where samples are frequent.
uint64_t SessionSampleTime();

// The interval is so small that what a sample costs is what the program takes longer.
bool SessionSamplesAreFrequent();

// True on the process's first thread. Its stack, for bounds.
bool IsMainThread();
void MainThreadStack(uint64_t* low, uint64_t* high);
uint64_t DefaultThreadStackBytes();

// The process is about to end without destructors, in whatever thread. Not what vfork left with our memory.
void SessionNoteEnd();

// Before a seccomp filter is installed: the file and this thread's buffer must exist, for afterwards nothing may be
// opened or asked.
void SessionBeforeSandbox();

const Options& SessionOptions();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_SESSION_H_
