// Thread buffers: allocation volume on its way to the sites, without a lock and without a shared write per sample.
//
// Each thread that gives samples owns one buffer in the profile (format::BufferRecord): a ring of commutative deltas
// with one producer. A full ring is applied to the sites by its owner with compare-and-swap; before each step a redo
// word says what is about to happen, so that a reader can finish the work of a process killed in the middle. The buffer
// of a dead thread, pending deltas included, is taken over by the next thread that needs one. Thread- and
// signal-safety: owner thread only, under the re-entry guard. A few system calls when a thread takes a buffer (gettid,
// "is its owner still there"), none later; none at all once the process is sandboxed.
#ifndef CADASTRE_INTERPOSER_THREAD_BUFFER_H_
#define CADASTRE_INTERPOSER_THREAD_BUFFER_H_

#include <stdint.h>

#include "interposer/profile_format.h"
#include "interposer/thread_state.h"

namespace cadastre {

// Counts the sample at its site; without a buffer (BufferPrepare) its volume is lost and counted as such.
void BufferAppend(ThreadState* state, const format::Delta& delta);

// Gives the thread a buffer, if it has none.
void BufferPrepare(ThreadState* state);

// 1/65536 blocks that a sample of `size` and `weight` bytes stands for.
uint64_t SampleCountFixed(uint64_t size, uint64_t weight);

// An unbiased estimate of its variance, bytes^2 (sampler.h).
double SampleVariance(uint64_t size, uint64_t weight);

// From now on no system call that a sandbox may punish (seccomp).
void BufferEnterSandbox();
bool IsSandboxed();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_THREAD_BUFFER_H_
