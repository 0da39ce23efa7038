// The thread records of the profile (format::ThreadRecord): which threads there are, who created them, where their
// stacks lie, and which records may be used again.
//
// A record is taken by the thread that calls pthread_create, filled by the new thread, and kept for good once the
// thread has given a sample (live samples name it). The record of a thread that has ended without one is taken for the
// next: n short-lived threads use no more records than there are threads at a time, and a few. What decides about that
// stands in private memory, never in the file.
//
// Thread- and signal-safety: lock-free; a few system calls (gettid, its name, "is it still there") when a thread is
// created, none once the process is sandboxed: then threads have records only if they give samples.
#ifndef CADASTRE_INTERPOSER_THREAD_TABLE_H_
#define CADASTRE_INTERPOSER_THREAD_TABLE_H_

#include <stdint.h>

#include "interposer/thread_state.h"

namespace cadastre {

bool ThreadTableInit(uint32_t capacity);

// For a thread that is about to be created: its record's index, or 0 where there is no room (counted). `creator` is the
// calling thread.
uint32_t ThreadRecordPrepare(const ThreadState& creator, uint32_t creation_site, uint64_t now_ns);
// It was not created after all.
void ThreadRecordGiveBack(uint32_t index);
// The first thing that the new thread does.
void ThreadRecordStart(ThreadState* state, uint32_t index, const StackBounds& block);

// The thread gives a sample. At its first one it takes a record, if it has none (its creation was not seen).
void ThreadRecordKeepSlow(ThreadState* state, uint64_t now_ns);
inline void ThreadRecordKeep(ThreadState* state, uint64_t now_ns) {
  if ((state->notes & (kKeepsRecord | kLacksRecord)) == 0) ThreadRecordKeepSlow(state, now_ns);
}

// At a clean exit: which threads have ended by now?
void ThreadTableMarkEnded();

// False also where nobody may be asked.
bool IsDeadThread(uint32_t tid);
// The calling thread's own; 0 where nobody may be asked.
uint32_t OwnTid();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_THREAD_TABLE_H_
