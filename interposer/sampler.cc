#include "interposer/sampler.h"

#include "interposer/fast_math.h"

namespace cadastre {

uint64_t NextRandom(uint64_t* random) {
  uint64_t z = (*random += 0x9e3779b97f4a7c15ull);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

uint64_t DrawGap(uint64_t* random, uint64_t interval_bytes) {
  // 53 random bits, moved by half a step: uniform in (0, 1), never 0 or 1. The largest gap is then R * ln(2^54) = 37 R.
  double uniform = (static_cast<double>(NextRandom(random) >> 11) + 0.5) * 0x1p-53;
  double gap = -FastLog(uniform) * static_cast<double>(interval_bytes);
  if (gap >= 0x1p62) return kCountdownOff;
  uint64_t whole = static_cast<uint64_t>(gap);
  return whole + 1;  // ceil, except on a set of measure zero
}

uint64_t SampleWeight(uint64_t bytes, uint64_t interval_bytes) {
  if (interval_bytes <= 1 || bytes == 0) return bytes;
  double size = static_cast<double>(bytes);
  double weight = size / OneMinusExpNegative(size / static_cast<double>(interval_bytes));
  // Above 2^53 doubles are coarser than bytes; such a block is always sampled and stands for itself.
  if (weight >= 0x1p53) return bytes;
  uint64_t rounded = static_cast<uint64_t>(weight + 0.5);
  return rounded < bytes ? bytes : rounded;
}

namespace {

void SetCountdown(ThreadState* state, uint64_t gap) {
  state->gap_is_due = gap <= kCountdownLimitBytes;
  state->countdown = state->gap_is_due ? gap : kCountdownLimitBytes;
}

}  // namespace

SampleDecision DecideSample(ThreadState* state, uint64_t bytes, uint64_t interval_bytes, bool paused) {
  if (paused) {
    state->interval_bytes = interval_bytes;
    state->gap_is_due = 0;
    state->countdown = kCountdownLimitBytes;
    return {false, 0};
  }
  if (interval_bytes <= 1) {
    state->interval_bytes = 1;
    state->countdown = 0;  // every allocation takes the slow path
    return {true, bytes};
  }
  bool due = state->countdown != 0 && state->gap_is_due;
  uint64_t drawn_with = state->interval_bytes;
  // Bytes of this allocation that lie beyond the end of the countdown: with a cut (or no) countdown they are still to
  // be tried.
  uint64_t rest = bytes - (state->countdown < bytes ? state->countdown : bytes);
  state->interval_bytes = interval_bytes;
  uint64_t gap = DrawGap(&state->random, interval_bytes);
  if (!due) {
    if (gap > rest) {
      // The countdown goes on behind this allocation. gap - rest >= 1, so it is never the "not drawn" 0.
      SetCountdown(state, gap - rest);
      return {false, 0};
    }
    drawn_with = interval_bytes;
    gap = DrawGap(&state->random, interval_bytes);
  }
  SetCountdown(state, gap);
  return {true, SampleWeight(bytes, drawn_with)};
}

}  // namespace cadastre
