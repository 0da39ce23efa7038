// Owner rules: the table `prefix,module,team[,kind]` that says who owns which code.
//
// A prefix is of a function, or with a marker (lib: src: class: thread:) of something else; "lib::" and the like are
// C++ namespaces, no markers. `lib:NAME$` is the whole name of a library, and `lib:NAME!PREFIX` functions in that
// library alone. A team may be empty. `kind` says how a rule is walked: RuleWalk.
//
// Format: UTF-8, RFC 4180 quoting, `#` comment lines, blank lines, CRLF and a byte order mark accepted. Header line
// required. The line `#include PATH` stands for the rules of another such file, header included, with PATH relative to
// the file that names it; a file may be included once. Errors: one line "FILE:LINE:COLUMN: what". Lines longer than
// kMaxLineBytes are refused before they are read whole. Thread-safety: plain values.
#ifndef CADASTRE_SYMBOLIZER_OWNER_RULES_H_
#define CADASTRE_SYMBOLIZER_OWNER_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace cadastre {

enum class RuleKey { kFunction, kLibrary, kSource, kClass, kThread };
// owner        charged when it is the first one found
// transparent  walked past wherever an owner is looked for; charged when none is found
// container    a shared structure: walked past while the creator of what lies in it is looked for, but its holder
// pool         a container whose pieces serve many: what the first requester was charged with is marked as pooled
enum class RuleWalk { kOwner, kTransparent, kContainer, kPool };

struct Rule {
  RuleKey key = RuleKey::kFunction;
  std::string prefix;  // without the "lib:", "src:", ... marker
  std::string module, team;
  RuleWalk walk = RuleWalk::kOwner;
  bool kind_given = false;  // the row has a `kind`; without one a platform module is transparent in stacks
  std::string file;         // "owners.csv", "teams/billing.csv" where owners.csv includes that, or "built-in"
  int line = 0;
  bool built_in = false;
};

struct OwnerRules {
  std::vector<Rule> rules;  // the user's first, then the built-in ones
  std::string path;         // of the user's file; empty = none was given
};

inline constexpr uint64_t kMaxLineBytes = 1 << 20;

// From memory; `#include` is an error there.
absl::StatusOr<std::vector<Rule>> ParseOwnerRules(std::string_view text, const std::string& file);
absl::StatusOr<std::vector<Rule>> ReadOwnerRules(const std::string& path);
const std::vector<Rule>& BuiltInRules();

const char* RuleMarker(RuleKey key);             // "", "lib:", "src:", "class:", "thread:"
const char* RuleWalkName(RuleWalk walk);         // as `kind` spells it
std::string RulePrefixText(const Rule& rule);    // "lib:libz.so": as the file spells it
std::string RulePlace(const Rule& rule);         // "owners.csv:14", "built-in"
bool IsPlatformModule(std::string_view module);  // "platform" or "platform/..."

// --rules PATH if not empty, else $CADASTRE_RULES, else ./owners.csv if it is there, else the built-in rules alone.
absl::StatusOr<OwnerRules> FindOwnerRules(const std::string& rules_flag);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_OWNER_RULES_H_
