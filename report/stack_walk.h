// The walk over one stack, from the leaf outwards: which of its frames is charged. Who finds the frames' rules, and in
// which order, is the caller's affair: profiles, collapsed stacks and `rules explain` walk alike.
//
// Frames that no rule matches and frames of transparent modules (platform, wrappers, containers) are passed; the first
// owned frame is charged. With no owned frame: an unmatched frame anywhere, or a stack that was cut → unattributed;
// otherwise every frame is transparent → the leaf-most transparent module that is not the platform's, else `platform`.
// Errors: none. Thread-safety: plain values.
//
// Example:
//   StackWalk walk;
//   for (int i = 0; i < frames; i++) if (walk.Pass(owner.Find(frame[i]), i)) break;
//   WalkOutcome outcome = walk.End(/*cut=*/false);
#ifndef CADASTRE_REPORT_STACK_WALK_H_
#define CADASTRE_REPORT_STACK_WALK_H_

#include <string_view>

#include "symbolizer/owner_rules.h"

namespace cadastre {

enum class ChargeKind { kOwned, kPlatform, kUnattributed };

inline constexpr char kUnattributedModule[] = "unattributed";
inline constexpr char kPlatformModule[] = "platform";

// True for modules whose presence on the way says nothing: libc, libstdc++, allocators, libcadastre.
bool IsPlumbing(std::string_view module);

// Pointers are those that were passed.
struct WalkOutcome {
  ChargeKind kind = ChargeKind::kUnattributed;
  const Rule* rule = nullptr;  // that decided; nullptr = none
  std::string_view module = kUnattributedModule;
  // The wrapper that the memory went through: the transparent rule nearest to the owner that is not mere plumbing.
  const Rule* via = nullptr;
  // The shared structure that it lies in: the leaf-most rule of kind container, else of kind pool; nullptr = none.
  const Rule* container = nullptr;
  bool pooled = false;   // a rule of kind pool was passed: others may use what the owner was the first to ask for
  int owner_frame = -1;  // -1 = no owned frame
  // Where there is none, the frame that says most: the leaf-most one that no rule matches, else the leaf-most of the
  // platform that is not mere plumbing; -1 = none.
  int telling_frame = -1;
};

class StackWalk {
 public:
  // The next frame and its rule (nullptr = none matches). True: it is the owner, and the walk is at its end.
  bool Pass(const Rule* rule, int frame);

  // Instead of Pass(nullptr, frame): somebody owns the frame by other means than a rule. The outcome has no rule.
  void PassOwned(int frame);

  // `cut`: frames are missing where the stack ends.
  WalkOutcome End(bool cut) const;

 private:
  WalkOutcome so_far_;
  const Rule* first_platform_ = nullptr;
  const Rule* first_transparent_ = nullptr;  // that is not the platform's
  const Rule* telling_platform_ = nullptr;   // leaf-most that is not plumbing
  const Rule* unmatched_via_ = nullptr;      // what the leaf-most frame without a rule went through
  int unmatched_frame_ = -1;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_STACK_WALK_H_
