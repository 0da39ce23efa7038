// What is legal in a rules file and still not what was meant.
//
// Errors: none. Thread-safety: pure; `matched` is only read.
//
// Example:
//   for (const LintFault& fault : LintRules(rules)) std::cout << fault.place << ": " << fault.what << "\n";
#ifndef CADASTRE_REPORT_RULES_LINT_H_
#define CADASTRE_REPORT_RULES_LINT_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "symbolizer/owner_rules.h"

namespace cadastre {

struct LintFault {
  std::string place;  // "owners.csv:14"
  std::string what;
};

// Of the user's rules, in the file's order:
//   - a prefix that stands there twice: again, or never reached because another owner comes first
//   - a prefix that ends inside a name ("com.acme.bill" also catches com.acme.billboard), and, where a rule with the
//     boundary stands beside it, that it has only such names left
//   - a module that several teams own; teams, or a module and the platform, that are spelt in two ways
//   - what looks like a marker and is none ("container:com.acme.", "libs:libz.so"), and kinds that nothing comes of: of
//     threads, and of a class whose module has no functions that would say who created what lies in it
//   - a module of the user's called platform, without a kind, for what the built-in rules do not know as such
std::vector<LintFault> LintRules(const std::vector<Rule>& rules);

// The user's rules that nothing in the profiles matched: `matched` holds the RulePlace of those that something did.
std::vector<LintFault> LintUnmatched(const std::vector<Rule>& rules, const absl::flat_hash_set<std::string>& matched);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_RULES_LINT_H_
