#include "report/stack_walk.h"

#include <algorithm>
#include <iterator>

#include "symbolizer/frame_owner.h"

namespace cadastre {

bool IsPlumbing(std::string_view module) {
  static constexpr std::string_view kPlumbing[] = {"platform",        "platform/libc",      "platform/libstdc++",
                                                   "platform/rust",   "platform/allocator", "platform/jvm.os",
                                                   "platform/jvm.nmt"};
  return std::find(std::begin(kPlumbing), std::end(kPlumbing), module) != std::end(kPlumbing);
}

bool StackWalk::Pass(const Rule* rule, int frame) {
  if (rule == nullptr) {
    if (unmatched_frame_ < 0) {
      unmatched_frame_ = frame;
      unmatched_via_ = so_far_.via;
    }
    return false;
  }
  if (!IsTransparentInStacks(*rule)) {
    PassOwned(frame);
    so_far_.rule = rule;
    so_far_.module = rule->module;
    return true;
  }
  if (rule->walk == RuleWalk::kPool) so_far_.pooled = true;
  const bool container = rule->walk == RuleWalk::kContainer, pool = rule->walk == RuleWalk::kPool;
  const Rule* known = so_far_.container;
  if ((container || pool) && (known == nullptr || (container && known->walk == RuleWalk::kPool)))
    so_far_.container = rule;
  if (!IsPlumbing(rule->module)) {
    so_far_.via = rule;
    if (telling_platform_ == nullptr) {
      telling_platform_ = rule;
      so_far_.telling_frame = frame;
    }
  }
  const Rule*& first = IsPlatformModule(rule->module) ? first_platform_ : first_transparent_;
  if (first == nullptr) first = rule;
  return false;
}

void StackWalk::PassOwned(int frame) {
  so_far_.kind = ChargeKind::kOwned;
  so_far_.owner_frame = frame;
}

WalkOutcome StackWalk::End(bool cut) const {
  WalkOutcome outcome = so_far_;
  if (outcome.kind == ChargeKind::kOwned) return outcome;
  const bool unmatched = cut || unmatched_frame_ >= 0;
  const Rule* rule = first_transparent_ != nullptr ? first_transparent_ : first_platform_;
  if (unmatched || rule == nullptr) {  // no rule at all: a stack of frames that nobody passed
    if (unmatched_frame_ >= 0) {
      outcome.telling_frame = unmatched_frame_;
      outcome.via = unmatched_via_;
    }
    return outcome;
  }
  outcome.kind = ChargeKind::kPlatform;
  outcome.rule = rule;
  outcome.module = rule == first_transparent_ ? std::string_view(rule->module) : kPlatformModule;
  outcome.via = telling_platform_;
  return outcome;
}

}  // namespace cadastre
