// `cadastre rules lint|explain|init|default`.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "report/cli/command.h"
#include "report/function_name.h"
#include "report/text_table.h"
#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

struct RulesCommand {
  std::string rules, profile;
  std::vector<std::string> words;
};

const char* Marker(RuleKey key) {
  static constexpr const char* kMarkers[] = {"", "lib:", "src:", "class:", "thread:"};
  return kMarkers[static_cast<int>(key)];
}

std::string Cell(const std::string& text) {
  bool plain = text.find_first_of(",\"\r\n") == std::string::npos && !absl::StartsWith(text, "#");
  return plain ? text : absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Line(const Rule& rule) {
  static constexpr const char* kWalks[] = {"owner", "transparent", "container"};
  return absl::StrCat(Cell(absl::StrCat(Marker(rule.key), rule.prefix)), ",", Cell(rule.module), ",", Cell(rule.team),
                      ",", kWalks[static_cast<int>(rule.walk)]);
}

int Default() {
  std::string out = "prefix,module,team,kind\n";
  for (const Rule& rule : BuiltInRules()) absl::StrAppend(&out, Line(rule), "\n");
  return Print(out);
}

// What is legal and still not what was meant.
int Lint(const RulesCommand& command) {
  std::string path = command.words.empty() ? command.rules : command.words[0];
  absl::StatusOr<OwnerRules> found = FindOwnerRules(path);
  if (!found.ok()) return Fail(found.status());
  if (found->path.empty()) return Fail("no rules file: name one, set $CADASTRE_RULES, or write ./owners.csv");
  std::string out;
  std::map<std::string, const Rule*> first;
  std::map<std::string, std::map<std::string, const Rule*>> teams;  // module → team → a rule that says so
  int faults = 0, rules = 0;
  for (const Rule& rule : found->rules) {
    if (rule.built_in) continue;
    rules++;
    std::string where = absl::StrCat(rule.file, ":", rule.line, ": ");
    std::string key = absl::StrCat(Marker(rule.key), rule.prefix);
    auto [entry, fresh] = first.emplace(key, &rule);
    if (!fresh) {
      faults++;
      bool same =
          entry->second->module == rule.module && entry->second->team == rule.team && entry->second->walk == rule.walk;
      absl::StrAppend(&out, where, "prefix ", key,
                      same ? " stands here again, first on line " : " is never reached: the rule on line ",
                      entry->second->line, same ? "\n" : absl::StrCat(" (", entry->second->module, ") comes first\n"));
    }
    teams[rule.module].emplace(rule.team, &rule);
  }
  for (const auto& [module, named] : teams) {
    if (named.size() < 2) continue;
    faults++;
    std::string list;
    for (const auto& [team, rule] : named)
      absl::StrAppend(&list, list.empty() ? "" : ", ", team.empty() ? "(none)" : team, " on line ", rule->line);
    absl::StrAppend(&out, found->path, ": module ", module, " has several teams: ", list, "\n");
  }
  absl::StrAppend(&out, found->path, ": ", rules, rules == 1 ? " rule, " : " rules, ",
                  faults == 0   ? "no fault"
                  : faults == 1 ? "1 fault"
                                : absl::StrCat(faults, " faults"),
                  "\n");
  int printed = Print(out);
  return printed != kExitDone ? printed : faults == 0 ? kExitDone : kExitFailed;
}

// "lib:/usr/lib/libz.so.1", "src:services/x.cc", "thread:worker-1", or a function.
std::string ExplainOne(const FrameOwner& owner, const std::string& text) {
  Frame frame;
  absl::string_view rest = text;
  const Rule* rule;
  if (absl::ConsumePrefix(&rest, "thread:")) {
    rule = owner.FindThread(std::string(rest));
  } else {
    if (absl::ConsumePrefix(&rest, "lib:")) {
      frame.library = std::string(rest);
    } else if (absl::ConsumePrefix(&rest, "src:")) {
      frame.file = std::string(rest);
    } else {
      frame.function = text;
      frame.resolved = true;
      frame.java = !absl::StrContains(text, "::") && !absl::StrContains(text, "(") && absl::StrContains(text, ".");
    }
    rule = owner.Find(frame);
  }
  if (rule == nullptr) return absl::StrCat(text, ": no rule matches\n");
  return absl::StrCat(text, ": ", rule->module, rule->team.empty() ? "" : absl::StrCat(" (", rule->team, ")"), " by ",
                      rule->built_in ? "the built-in rule " : absl::StrCat(rule->file, ":", rule->line, " "),
                      Marker(rule->key), rule->prefix,
                      IsTransparentInStacks(*rule) ? ", walked past while an owner is looked for" : "", "\n");
}

int Explain(const RulesCommand& command) {
  absl::StatusOr<OwnerRules> rules = FindOwnerRules(command.rules);
  if (!rules.ok()) return Fail(rules.status());
  FrameOwner owner(*rules);
  std::string out;
  for (const std::string& word : command.words) out += ExplainOne(owner, word);
  return Print(out);
}

// A starter file: one rule for each guessed owner and each unattributed prefix, heaviest first.
int Init(const RulesCommand& command) {
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(command.profile, command.rules);
  if (!loaded.ok()) return Fail(loaded.status());
  LoadedProfile& input = **loaded;
  Report report =
      BuildReport(input.profile, input.rules, input.attribution.get(), input.symbolizer.get(), ReportOptions{});
  std::map<std::string, uint64_t> weights;
  for (const SiteRow& row : report.sites) {
    std::string prefix;
    if (row.guessed && row.owner_frame >= 0) prefix = PrefixForFrame(*report.FramesOf(row)[row.owner_frame]);
    if (row.unattributed) prefix = input.attribution->SuggestedPrefix(row.site);
    if (!prefix.empty()) weights[prefix] += row.tally.live_bytes + row.tally.allocated_bytes;
  }
  std::vector<std::pair<uint64_t, std::string>> order;
  for (const auto& [prefix, weight] : weights) order.emplace_back(weight, prefix);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::string out =
      "# Who owns which code. Longest prefix wins. Put the team's name for TEAM; rename modules as you "
      "like.\nprefix,module,team\n";
  for (const auto& [weight, prefix] : order) {
    std::string module = prefix;
    for (const char* marker : {"lib:", "src:"}) {
      if (absl::StartsWith(module, marker)) module = module.substr(4);
    }
    module = absl::StrReplaceAll(module, {{"::", "."}});
    while (!module.empty() && module.back() == '.') module.pop_back();
    absl::StrAppend(&out, Cell(prefix), ",", Cell(SafeText(module)), ",TEAM\n");
  }
  return Print(out);
}

}  // namespace

void AddRulesCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<RulesCommand>();
  CLI::App* rules = app.add_subcommand("rules", "owner rules: lint, explain, init, default");
  rules->require_subcommand(1);
  CLI::App* lint = rules->add_subcommand("lint", "checks a rules file; exit 1 if it has a fault");
  lint->add_option("FILE", options->words, "rules file (default: $CADASTRE_RULES, then ./owners.csv)")->expected(0, 1);
  lint->add_option("--rules", options->rules, "the same");
  lint->footer("Example: cadastre rules lint owners.csv");
  lint->callback([=] { invocation->status = Lint(*options); });
  CLI::App* explain = rules->add_subcommand("explain", "says which rule a frame falls to, and why");
  explain->add_option("FRAME", options->words, "a function, lib:FILE, src:PATH or thread:NAME")->required();
  explain->add_option("--rules", options->rules, "rules file");
  explain->footer("Example: cadastre rules explain --rules owners.csv 'acme::billing::Writer::Grow()' lib:libz.so.1");
  explain->callback([=] { invocation->status = Explain(*options); });
  CLI::App* init = rules->add_subcommand("init", "writes a starter rules file from what a profile has no owner for");
  init->add_option("P", options->profile, "profile, PID, or one with @LABEL")->required();
  init->add_option("--rules", options->rules, "rules that are there already");
  init->footer("Example: cadastre rules init pay.cad > owners.csv");
  init->callback([=] { invocation->status = Init(*options); });
  CLI::App* builtin = rules->add_subcommand("default", "prints the built-in rules");
  builtin->footer("Example: cadastre rules default | grep zip");
  builtin->callback([=] { invocation->status = Default(); });
}

}  // namespace cadastre
