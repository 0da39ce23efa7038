// Something about this JVM that never changes and that the first thread which needs it finds out, while the others, and
// a signal handler in the middle, do without.
//
// Thread- and signal-safety: safe in hooks; no lock, nobody waits. Constant-initialised.
#ifndef CADASTRE_INTERPOSER_JVM_LEARN_ONCE_H_
#define CADASTRE_INTERPOSER_JVM_LEARN_ONCE_H_

#include <stdint.h>

#include <atomic>

namespace cadastre {

enum class Learnt : uint32_t {
  kNotYet,    // the next who asks tries again
  kLearning,  // by somebody else, just now
  kKnown,
  kCannot,  // nor later
};

class LearnOnce {
 public:
  // learn(): a Learnt but kLearning; is called if nothing is known yet. What it has written is seen by all who get
  // kKnown.
  template <typename Learn>
  Learnt Ask(const Learn& learn) {
    Learnt state = state_.load(std::memory_order_acquire);
    if (state == Learnt::kNotYet && state_.compare_exchange_strong(state, Learnt::kLearning)) {
      state = learn();
      state_.store(state, std::memory_order_release);
    }
    return state;
  }

 private:
  std::atomic<Learnt> state_{Learnt::kNotYet};
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_LEARN_ONCE_H_
