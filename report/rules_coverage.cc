#include "report/rules_coverage.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace cadastre {

RulesCoverage::RulesCoverage(const OwnerRules& rules) : owner_(rules) {
  for (const Rule& rule : rules.rules) {
    if (!rule.built_in) user_rules_.push_back(rule);
  }
  for (const Rule& rule : user_rules_) catch_all_.emplace(RulePlace(rule), IsCatchAll(rule));
}

bool RulesCoverage::IsCatchAll(const Rule& rule) const {
  if (rule.key == RuleKey::kFunction && rule.prefix.find('.') + 1 == rule.prefix.size()) return true;
  return std::any_of(user_rules_.begin(), user_rules_.end(), [&](const Rule& other) {
    return other.key == rule.key && other.module != rule.module && other.prefix.size() > rule.prefix.size() &&
           absl::StartsWith(other.prefix, rule.prefix);
  });
}

void RulesCoverage::Take(const CodeMember& member) {
  members_++;
  const Rule* rule = owner_.Find(member.frame);
  // What the C++ library instantiated here does not stand for the rest of the code.
  const bool own_function =
      !member.frame.library.empty() && member.frame.resolved && (rule == nullptr || !rule->built_in);
  if (own_function) libraries_with_functions_.insert(member.where);
  if (rule != nullptr && (rule->built_in || !catch_all_.at(RulePlace(*rule)))) return;
  CoverageGap& gap = (rule == nullptr ? unowned_ : weak_)[member.prefix];
  gap.prefix = member.prefix;
  gap.what = member.what;
  gap.members++;
  if (gap.where.empty()) gap.where = member.where;
  gap.held_by = rule;
}

std::vector<CoverageGap> RulesCoverage::Sorted(const std::map<std::string, CoverageGap>& gaps) const {
  std::vector<CoverageGap> sorted;
  for (const auto& [prefix, gap] : gaps) {
    if (gap.what == "library" && libraries_with_functions_.contains(gap.where)) continue;
    sorted.push_back(gap);
  }
  return sorted;
}

std::vector<CoverageGap> RulesCoverage::Unowned() const { return Sorted(unowned_); }
std::vector<CoverageGap> RulesCoverage::Weak() const { return Sorted(weak_); }

}  // namespace cadastre
