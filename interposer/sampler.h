// The byte-Poisson sampler: which allocations are recorded, and what each recorded one stands for.
//
// Sample points lie on the thread's allocated bytes like a Poisson process of rate 1/R: the gap to the next one is
// exponential with mean R. An allocation of S bytes is recorded if at least one point falls into it:          p(S) =
// P(gap <= S) = 1 - exp(-S/R). A recorded allocation stands for w = S / p(S) bytes and w/S blocks: E[w * recorded] = S,
// so every sum of weights is unbiased, for all sizes. Its variance is E[w^2 p] - S^2 = S^2 (1-p)/p, of which w(w-S) is
// an unbiased estimate per recorded block: E[w(w-S) * recorded] = p * (S/p)(S/p - S) = S^2 (1-p)/p. The gap has no
// memory, so a countdown may be cut anywhere and drawn again: it is cut at 1 MiB, so that pause and a new interval
// reach every thread soon. The R with which the gap was drawn decides the weight. Integer countdowns: gap = ceil(X), X
// exponential, so gap <= S if and only if X <= S: p(S) is exact for integer S. Zero-size allocations are never due,
// except in exact mode. Exact mode (R = 1): every allocation is recorded, w = S, no error. Thread- and signal-safety:
// owner thread only; called under the re-entry guard.
#ifndef CADASTRE_INTERPOSER_SAMPLER_H_
#define CADASTRE_INTERPOSER_SAMPLER_H_

#include <stdint.h>

#include "interposer/thread_state.h"

namespace cadastre {

inline constexpr uint64_t kCountdownLimitBytes = 1 << 20;
inline constexpr uint64_t kCountdownOff = 1ull << 62;  // recording is over: the slow path is never needed again

struct SampleDecision {
  bool record;
  uint64_t weight_bytes;
};

// An allocation of `bytes` reached the end of the countdown (or exact mode is on). Decides, and sets the next
// countdown. interval_bytes is the current one; paused: keep counting, record nothing.
SampleDecision DecideSample(ThreadState* state, uint64_t bytes, uint64_t interval_bytes, bool paused);

// Weight of a recorded allocation of `bytes` at mean interval `interval_bytes`, rounded to a whole byte.
uint64_t SampleWeight(uint64_t bytes, uint64_t interval_bytes);

// Exponential gap with mean interval_bytes, at least 1.
uint64_t DrawGap(uint64_t* random, uint64_t interval_bytes);

// splitmix64 (Steele, Lea, Flood 2014): one 64-bit word of state, passes BigCrush.
uint64_t NextRandom(uint64_t* random);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_SAMPLER_H_
