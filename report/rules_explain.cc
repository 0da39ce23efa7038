#include "report/rules_explain.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/frame_text.h"
#include "report/stack_walk.h"
#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

const Rule* FindRule(const FrameOwner& owner, const std::string& text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "thread:") && !absl::StartsWith(rest, ":")) return owner.FindThread(std::string(rest));
  rest = text;
  if (absl::ConsumePrefix(&rest, "class:") && !absl::StartsWith(rest, ":"))
    return owner.FindClass({rest.data(), rest.size()});
  return FindRuleOfText(owner, text);
}

std::string RuleWords(const Rule& rule) {
  return absl::StrCat(rule.built_in ? "the built-in rule " : absl::StrCat(RulePlace(rule), " "), RulePrefixText(rule));
}

std::string ChargeWords(const Rule& rule) {
  return absl::StrCat(rule.module, rule.team.empty() ? "" : absl::StrCat(" (", rule.team, ")"));
}

std::string WalkWords(const Rule& rule) {
  switch (rule.walk) {
    case RuleWalk::kContainer:
      return ", a container: walked past while who created what lies in it is looked for";
    case RuleWalk::kPool:
      return ", a pool: walked past while the first requester is looked for";
    default:
      return IsTransparentInStacks(rule) ? ", walked past while an owner is looked for" : "";
  }
}

// What `loser` lost by; both match the same frame.
std::string Reason(const Rule& winner, const Rule& loser) {
  auto rank = [](const Rule& rule) { return rule.key == RuleKey::kLibrary ? 2 : rule.key == RuleKey::kSource ? 1 : 0; };
  static constexpr const char* kRanks[] = {"a function", "a source path", "a library"};
  if (rank(winner) != rank(loser)) return absl::StrCat(kRanks[rank(winner)], " beats ", kRanks[rank(loser)]);
  if (winner.prefix.size() > loser.prefix.size()) return "shorter";
  if (winner.prefix.size() < loser.prefix.size()) return "a user's rule for the whole beats built-in ones for parts";
  if (winner.built_in != loser.built_in) return "a user's rule beats a built-in one of the same length";
  return winner.prefix == loser.prefix ? "the same prefix, further down" : "no longer, further down";
}

// Rules `lib:NAME!PREFIX` that would match if the frame named the library.
std::string LibraryHints(const std::vector<Rule>& rules, const std::string& text) {
  std::string hints;
  const Frame frame = ReadingsOfText(text).front();
  if (!frame.library.empty() || frame.function.empty()) return "";
  const Rule* best = nullptr;
  std::string library;
  for (const Rule& rule : rules) {
    size_t bang = rule.prefix.find('!');
    if (rule.key != RuleKey::kLibrary || bang == std::string::npos) continue;
    std::string prefix = rule.prefix.substr(bang + 1);
    if (!absl::StartsWith(frame.function, prefix)) continue;
    if (best == nullptr || rule.prefix.size() > best->prefix.size()) {
      best = &rule;
      library = rule.prefix.substr(0, bang);
    }
  }
  if (best == nullptr) return "";
  return absl::StrCat("  in ", library, " it would be ", ChargeWords(*best), " by ", RuleWords(*best), ": ask for '",
                      text, " (", library, ")'\n");
}

// At semicolons that are not of a signature: "com/acme/X.run(Ljava/lang/String;)V".
std::vector<std::string> SplitOutsideParentheses(const std::string& stack) {
  std::vector<std::string> frames = {""};
  int depth = 0;
  for (char c : stack) {
    depth += c == '(' ? 1 : c == ')' && depth > 0 ? -1 : 0;
    if (c == ';' && depth == 0) {
      frames.emplace_back();
    } else {
      frames.back() += c;
    }
  }
  return frames;
}

}  // namespace

std::string ExplainFrame(const OwnerRules& rules, const std::string& text) {
  FrameOwner owner(rules);
  const Rule* winner = FindRule(owner, text);
  if (winner == nullptr) return absl::StrCat(text, ": no rule matches\n", LibraryHints(rules.rules, text));
  std::string out =
      absl::StrCat(text, ": ", ChargeWords(*winner), " by ", RuleWords(*winner), WalkWords(*winner), "\n");
  // A rule matches the frame if it would win alone.
  std::vector<const Rule*> others;
  bool is_winner_seen = false;
  for (const Rule& rule : rules.rules) {
    bool same = rule.built_in == winner->built_in && rule.file == winner->file && rule.line == winner->line;
    if (same && !is_winner_seen) {
      is_winner_seen = true;
      continue;
    }
    if (FindRule(FrameOwner({{rule}, ""}), text) != nullptr) others.push_back(&rule);
  }
  std::stable_sort(others.begin(), others.end(),
                   [](const Rule* a, const Rule* b) { return a->prefix.size() > b->prefix.size(); });
  for (const Rule* rule : others) {
    absl::StrAppend(&out, "  not ", ChargeWords(*rule), " by ", RuleWords(*rule), ": ", Reason(*winner, *rule), "\n");
  }
  return out;
}

std::string ExplainStack(const OwnerRules& rules, const std::vector<std::string>& frames) {
  FrameOwner owner(rules);
  StackWalk walk;
  std::string out;
  bool owned = false;
  for (size_t i = 0; i < frames.size(); i++) {
    const Rule* rule = FindRule(owner, frames[i]);
    const bool charged = !owned && walk.Pass(rule, static_cast<int>(i));
    absl::StrAppend(&out, charged ? "* " : "  ", frames[i], ": ");
    if (rule == nullptr) {
      out += "no rule matches\n";
    } else {
      absl::StrAppend(&out, ChargeWords(*rule), " by ", RuleWords(*rule),
                      owned ? ", behind the owner" : WalkWords(*rule), "\n");
    }
    owned |= charged;
  }
  WalkOutcome outcome = walk.End(/*cut=*/false);
  switch (outcome.kind) {
    case ChargeKind::kOwned:
      absl::StrAppend(&out, "charged to ", ChargeWords(*outcome.rule), " by ", RuleWords(*outcome.rule));
      break;
    case ChargeKind::kPlatform:
      absl::StrAppend(&out, "charged to ", std::string(outcome.module),
                      ": no frame has an owner, and a rule matches each");
      break;
    case ChargeKind::kUnattributed:
      out += "unattributed: no frame has an owner";
      if (outcome.telling_frame >= 0) {
        absl::StrAppend(&out, ", and no rule matches ", frames[static_cast<size_t>(outcome.telling_frame)]);
      }
  }
  if (outcome.via != nullptr) absl::StrAppend(&out, ", via ", outcome.via->module);
  if (outcome.container != nullptr) absl::StrAppend(&out, ", held by ", outcome.container->module);
  return absl::StrCat(out, outcome.pooled ? ", pooled" : "", "\n");
}

std::vector<std::string> FramesOfPastedStack(const std::string& text) {
  for (RuleKey key : {RuleKey::kClass, RuleKey::kThread}) {
    if (absl::StartsWith(text, RuleMarker(key))) return {text};  // no frame: "class:[Lcom.acme.Foo;"
  }
  std::vector<std::string> frames;
  if (absl::StrContains(text, " < ")) {
    frames = absl::StrSplit(text, " < ");
  } else if (absl::StrContains(text, ";")) {
    std::string stack = text;
    size_t blank = stack.find_last_of(" \t");
    bool count = blank != std::string::npos && blank + 1 < stack.size() &&
                 stack.find_first_not_of("0123456789", blank + 1) == std::string::npos;
    if (count) stack.resize(blank);
    frames = SplitOutsideParentheses(stack);
    std::reverse(frames.begin(), frames.end());
  } else {
    frames = {text};
  }
  std::vector<std::string> named;
  for (const std::string& frame : frames) {
    absl::string_view name = absl::StripAsciiWhitespace(frame);
    absl::ConsumePrefix(&name, "* ");
    name = absl::StripAsciiWhitespace(name);
    if (!name.empty() && name != "…") named.emplace_back(name);
  }
  return named;
}

}  // namespace cadastre
