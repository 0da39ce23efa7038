// Makes room in the live table without losing an estimate: when the interval doubles, the samples that are there are
// thinned to it.
//
// A live sample of S bytes with weight w was kept with p = S/w. At the new interval it would have been kept with
// p' = 1 - exp(-S/R'), and would weigh w' = S/p'. So each sample with w < w' is kept with q = p'/p = w/w' and then
// weighs w', or is forgotten: E[q w'] = w, every sum stays unbiased, and w'(w'-S) stays the unbiased estimate of the
// variance, as if it had been sampled at R' from the start. A sample with w >= w' stays as it is, so a pass may meet
// fresh samples, old ones of a larger interval, and its own work, and does nothing twice.
//
// Without it the newest memory, which is what somebody looks for, would be measured worst: with every doubling only
// half of what is left of the table would be there for it, and in the end nothing.
//
//   half full: interval x2, pass begins ──each recorded sample thins kSlotsPerStep slots──> pass ends, table about 1/4
//   full. Blocks far larger than R' are all kept: then the next doubling comes where half of the rest is used up.
//
// Thread- and signal-safety: lock-free; safe in a signal handler that interrupts it. A slot's owner may free its block
// at any moment (live_table.h, LiveReweigh). Cost: a few microseconds for each recorded sample while a pass lasts.
#ifndef CADASTRE_INTERPOSER_LIVE_THINNING_H_
#define CADASTRE_INTERPOSER_LIVE_THINNING_H_

#include <stdint.h>

namespace cadastre {

inline constexpr uint32_t kSlotsPerStep = 32;

// Begins a pass over the slots in use. No other pass may be under way.
void ThinningStart(uint64_t interval_bytes);

// Does a part of the pass, if there is one. True once: this part was the last.
bool ThinningStep(uint64_t* random);

// The number of live samples at which the interval doubles next, after a pass that left `count` of `capacity`.
uint32_t NextDoubling(uint32_t count, uint32_t capacity);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_LIVE_THINNING_H_
