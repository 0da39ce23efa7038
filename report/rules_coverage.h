// Which packages, namespaces and libraries of a build no rule owns.
//
// Errors: none. Thread-safety: none.
//
// Example:
//   RulesCoverage coverage(rules);
//   ReadJar("app.jar", [&](const CodeMember& member) { coverage.Take(member); });
//   for (const CoverageGap& gap : coverage.Unowned()) ...
#ifndef CADASTRE_REPORT_RULES_COVERAGE_H_
#define CADASTRE_REPORT_RULES_COVERAGE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "report/code_inventory.h"
#include "symbolizer/frame_owner.h"

namespace cadastre {

struct CoverageGap {
  std::string prefix;  // of the rule that is missing
  std::string what;    // "class", "function", ...
  uint64_t members = 0;
  std::string where;              // one file that has such members
  const Rule* held_by = nullptr;  // the catch-all; nullptr: no rule at all
};

class RulesCoverage {
 public:
  explicit RulesCoverage(const OwnerRules& rules);

  void Take(const CodeMember& member);

  uint64_t members() const { return members_; }
  // By prefix. A library counts where it has no namespaces that would be counted instead.
  std::vector<CoverageGap> Unowned() const;
  // What a catch-all alone holds: a user's rule out of which others cut parts for other modules, or a prefix of one
  // package part ("com.").
  std::vector<CoverageGap> Weak() const;

 private:
  bool IsCatchAll(const Rule& rule) const;
  std::vector<CoverageGap> Sorted(const std::map<std::string, CoverageGap>& gaps) const;

  FrameOwner owner_;
  std::vector<Rule> user_rules_;
  std::map<std::string, bool> catch_all_;  // RulePlace → whether it is one
  std::map<std::string, CoverageGap> unowned_, weak_;
  std::set<std::string> libraries_with_functions_;
  uint64_t members_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_RULES_COVERAGE_H_
