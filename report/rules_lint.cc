#include "report/rules_lint.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/frame_text.h"
#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

// "Payments Team", "payments-team" and "payments_team" are one.
std::string Folded(const std::string& name) {
  std::string folded;
  for (char c : name) {
    if (absl::ascii_isalnum(c) || static_cast<unsigned char>(c) >= 0x80) folded += absl::ascii_tolower(c);
  }
  return folded;
}

// Where a prefix ends inside a name, the prefix with the boundary that was meant; empty: it ends at one, or has none.
std::string WithBoundary(const Rule& rule) {
  const std::string& prefix = rule.prefix;
  const bool in_word = absl::ascii_isalnum(prefix.back());
  if (!in_word) return "";
  switch (rule.key) {
    case RuleKey::kFunction:
    case RuleKey::kClass:
      if (absl::StrContains(prefix, "::")) return prefix + "::";
      if (absl::StrContains(prefix, ".")) return prefix + ".";
      return "";  // one word: a C function, or the beginning of many
    case RuleKey::kSource: {
      std::string_view name = std::string_view(prefix).substr(prefix.rfind('/') + 1);
      return name.find('.') == std::string_view::npos ? prefix + "/" : "";
    }
    case RuleKey::kLibrary:  // stems are the rule: librocksdbjni, libnetty_
    case RuleKey::kThread:
      return "";
  }
  return "";
}

// A class's own name is where its functions' names go on with a dot: only a longer class would be caught by accident.
bool IsClassName(const Rule& rule) {
  size_t dot = rule.prefix.rfind('.');
  return dot != std::string::npos && dot + 1 < rule.prefix.size() && absl::ascii_isupper(rule.prefix[dot + 1]);
}

// Whether one of two words comes of the other by one letter that is wrong, missing, too much, or two that are
// exchanged.
bool IsSlipOf(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  size_t same = 0;
  while (same < a.size() && a[same] == b[same]) same++;
  const std::string_view rest_a = a.substr(same), rest_b = b.substr(same);
  if (a.size() < b.size()) return rest_a == rest_b.substr(1);
  if (rest_a.size() > 1 && rest_a[0] == rest_b[1] && rest_a[1] == rest_b[0])
    return rest_a.substr(2) == rest_b.substr(2);
  return rest_a.empty() || rest_a.substr(1) == rest_b.substr(1);
}

// What is written before a prefix for what it is of, as people who do not look it up write it.
struct MarkerWord {
  std::string_view word, marker;
};
constexpr MarkerWord kMarkerWords[] = {
    {"lib", "lib:"},  {"library", "lib:"}, {"src", "src:"},    {"source", "src:"},    {"file", "src:"},
    {"path", "src:"}, {"class", "class:"}, {"type", "class:"}, {"thread", "thread:"}, {"threads", "thread:"}};

// What such a word means: a marker, or the name of a kind; empty: nothing that is known.
std::string_view MeantBy(std::string_view word) {
  const std::string lower = absl::AsciiStrToLower(absl::string_view(word.data(), word.size()));
  auto matches = [&](std::string_view known) { return lower == known || (known.size() > 3 && IsSlipOf(lower, known)); };
  for (RuleWalk walk : {RuleWalk::kOwner, RuleWalk::kTransparent, RuleWalk::kContainer, RuleWalk::kPool}) {
    if (matches(RuleWalkName(walk))) return RuleWalkName(walk);
  }
  for (const MarkerWord& known : kMarkerWords) {
    if (matches(known.word)) return known.marker;
  }
  return "";
}

class Linter {
 public:
  explicit Linter(const std::vector<Rule>& rules) : built_in_({BuiltInRules(), ""}) {
    for (const Rule& rule : rules) {
      if (!rule.built_in) rules_.push_back(&rule);
    }
  }

  std::vector<LintFault> Lint() {
    for (const Rule* rule : rules_) first_.try_emplace(RulePrefixText(*rule), rule);
    for (const Rule* rule : rules_) {
      if (!Twin(*rule) && !Marker(*rule)) Boundary(*rule);
      Kind(*rule);
      Platform(*rule);
      Spelling(*rule);
    }
    for (const auto& [module, teams] : teams_of_) {
      if (teams.size() < 2) continue;
      std::string list;
      const Rule* last = nullptr;
      for (const auto& [team, rule] : teams) {
        absl::StrAppend(&list, list.empty() ? "" : ", ", team.empty() ? "(none)" : team, " at ", RulePlace(*rule));
        if (last == nullptr || rule->line > last->line) last = rule;
      }
      Add(*last, absl::StrCat("module ", module, " has several teams: ", list));
    }
    return std::move(faults_);
  }

 private:
  void Add(const Rule& rule, const std::string& what) { faults_.push_back({RulePlace(rule), what}); }

  bool Twin(const Rule& rule) {
    const Rule* first = first_[RulePrefixText(rule)];
    if (first == &rule) return false;
    bool same = first->module == rule.module && first->team == rule.team && first->walk == rule.walk;
    Add(rule, absl::StrCat("prefix ", RulePrefixText(rule),
                           same ? " stands here again, first at " : " is never reached: the rule at ",
                           RulePlace(*first), same ? "" : absl::StrCat(" (", first->module, ") comes first")));
    return true;
  }

  void Boundary(const Rule& rule) {
    std::string meant = WithBoundary(rule);
    if (meant.empty()) return;
    std::string prefix = RulePrefixText(rule);
    meant = absl::StrCat(RuleMarker(rule.key), meant);
    auto longer = first_.find(meant);
    if (longer != first_.end() && longer->second != &rule) {
      Add(rule, absl::StrCat("prefix ", prefix, " has only names such as ", prefix, "x left: ", meant, " at ",
                             RulePlace(*longer->second), " is longer and has the rest"));
      return;
    }
    if (IsClassName(rule)) return;
    Add(rule, absl::StrCat("prefix ", prefix, " ends inside a name and also catches ", prefix, "x; write ", meant));
  }

  // "container:com.acme.Cache" and "libs:libz.so" are prefixes of functions that nobody has.
  bool Marker(const Rule& rule) {
    const size_t colon = rule.prefix.find(':');
    if (rule.key != RuleKey::kFunction || colon == std::string::npos || rule.prefix.substr(colon, 2) == "::")
      return false;
    const std::string word = rule.prefix.substr(0, colon), rest = rule.prefix.substr(colon + 1);
    const std::string meant(MeantBy(word));
    if (meant.empty()) return false;
    const std::string said =
        absl::StrCat("prefix ", rule.prefix, " is of a function called so: ", word, ": is no marker");
    if (meant.back() == ':') {
      Add(rule, absl::StrCat(said, "; write ", meant, rest));
    } else {
      Add(rule, absl::StrCat(said, "; write ", rest, " and ", meant, " in the column kind"));
    }
    return true;
  }

  // A kind that nothing can come of.
  void Kind(const Rule& rule) {
    if (rule.walk == RuleWalk::kOwner) return;
    const std::string kind = RuleWalkName(rule.walk);
    if (rule.key == RuleKey::kThread) {
      Add(rule, absl::StrCat("a thread is in no stack, so the kind ", kind, " of ", RulePrefixText(rule),
                             " says nothing: only owner does"));
      return;
    }
    if (rule.key != RuleKey::kClass || rule.walk == RuleWalk::kTransparent) return;
    for (const Rule* other : rules_) {
      const bool in_stacks = other->key != RuleKey::kClass && other->key != RuleKey::kThread;
      const bool shared = other->walk == RuleWalk::kContainer || other->walk == RuleWalk::kPool;
      if (in_stacks && shared && other->module == rule.module) return;
    }
    Add(rule, absl::StrCat("no frame says who created what lies in ", RulePrefixText(rule), ": give module ",
                           rule.module, " a rule of kind ", kind, " for the functions that fill it too"));
  }

  void Platform(const Rule& rule) {
    if (rule.kind_given) return;
    if (!IsPlatformModule(rule.module)) {
      std::string head = rule.module.substr(0, rule.module.find('/'));
      if (Folded(head) == "platform")
        Add(rule, absl::StrCat("module ", rule.module, " is not the platform's: only platform and platform/... are"));
      return;
    }
    const Rule* known = rule.key == RuleKey::kThread  ? nullptr
                        : rule.key == RuleKey::kClass ? built_in_.FindClass(rule.prefix)
                                                      : FindRuleOfText(built_in_, RulePrefixText(rule));
    if (known != nullptr && IsPlatformModule(known->module)) return;
    Add(rule, absl::StrCat("module ", rule.module, " is walked past, so ", RulePrefixText(rule),
                           " owns nothing in a stack; if that is meant, say so by the kind transparent (or owner, or "
                           "container)"));
  }

  void Spelling(const Rule& rule) {
    teams_of_[rule.module].emplace(rule.team, &rule);
    if (rule.team.empty()) return;
    auto [entry, fresh] = spelt_.try_emplace(Folded(rule.team), &rule);
    if (fresh || entry->second->team == rule.team || !told_.insert(rule.team).second) return;
    Add(rule, absl::StrCat("team ", rule.team, " is spelt ", entry->second->team, " at ", RulePlace(*entry->second)));
  }

  FrameOwner built_in_;
  std::vector<const Rule*> rules_;
  std::map<std::string, const Rule*> first_;                            // prefix → the first rule that has it
  std::map<std::string, std::map<std::string, const Rule*>> teams_of_;  // module → team → a rule that says so
  std::map<std::string, const Rule*> spelt_;                            // folded team → the first rule that has it
  absl::flat_hash_set<std::string> told_;
  std::vector<LintFault> faults_;
};

}  // namespace

std::vector<LintFault> LintRules(const std::vector<Rule>& rules) { return Linter(rules).Lint(); }

std::vector<LintFault> LintUnmatched(const std::vector<Rule>& rules, const absl::flat_hash_set<std::string>& matched) {
  std::vector<LintFault> faults;
  for (const Rule& rule : rules) {
    if (rule.built_in || rule.key == RuleKey::kClass || matched.contains(RulePlace(rule))) continue;
    faults.push_back({RulePlace(rule), absl::StrCat("prefix ", RulePrefixText(rule), " matched nothing")});
  }
  return faults;
}

}  // namespace cadastre
