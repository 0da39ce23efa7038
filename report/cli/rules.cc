// `cadastre rules lint|explain|init|default`; the other two have files of their own.
#include "report/cli/rules.h"

#include <algorithm>
#include <iostream>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "report/csv_cell.h"
#include "report/rules_explain.h"
#include "report/rules_lint.h"
#include "report/text_table.h"
#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

struct RulesCommand {
  std::string rules, profile;
  std::vector<std::string> words, profiles;
};

int Default() {
  std::string out = "prefix,module,team,kind\n";
  for (const Rule& rule : BuiltInRules()) {
    absl::StrAppend(&out, CsvCell(RulePrefixText(rule)), ",", CsvCell(rule.module), ",", CsvCell(rule.team), ",",
                    RuleWalkName(rule.walk), "\n");
  }
  return Print(out);
}

// Adds the places of the rules that a profile's frames and threads fall to.
absl::Status CollectMatched(const std::string& profile, const std::string& rules_path,
                            absl::flat_hash_set<std::string>* matched) {
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(profile, rules_path);
  if (!loaded.ok()) return loaded.status();
  LoadedProfile& input = **loaded;
  FrameOwner owner(input.rules);
  auto add = [&](const Rule* rule) {
    if (rule != nullptr && !rule->built_in) matched->insert(RulePlace(*rule));
  };
  for (uint64_t raw : input.attribution->DistinctFrames()) {
    for (const Frame& frame : input.symbolizer->Resolve(raw)) add(owner.Find(frame));
  }
  for (const Thread& thread : input.profile.threads) add(owner.FindThread(thread.name));
  return absl::OkStatus();
}

int Lint(const RulesCommand& command) {
  absl::StatusOr<OwnerRules> found = FindOwnerRules(command.words.empty() ? command.rules : command.words[0]);
  if (!found.ok()) return Fail(found.status());
  if (found->path.empty()) return Fail("no rules file: name one, set $CADASTRE_RULES, or write ./owners.csv");
  std::vector<LintFault> faults = LintRules(found->rules);
  if (!command.profiles.empty()) {
    absl::flat_hash_set<std::string> matched;
    for (const std::string& profile : command.profiles) {
      if (absl::Status status = CollectMatched(profile, found->path, &matched); !status.ok()) return Fail(status);
    }
    std::vector<LintFault> unmatched = LintUnmatched(found->rules, matched);
    faults.insert(faults.end(), unmatched.begin(), unmatched.end());
  }
  const auto rules =
      std::count_if(found->rules.begin(), found->rules.end(), [](const Rule& rule) { return !rule.built_in; });
  if (rules == 0) faults.push_back({absl::StrCat(found->path, ":1"), "no rule in it"});
  std::string out;
  for (const LintFault& fault : faults)
    absl::StrAppend(&out, SafeText(absl::StrCat(fault.place, ": ", fault.what)), "\n");
  absl::StrAppend(&out, found->path, ": ", rules, rules == 1 ? " rule, " : " rules, ",
                  faults.empty()       ? "no fault"
                  : faults.size() == 1 ? "1 fault"
                                       : absl::StrCat(faults.size(), " faults"),
                  "\n");
  int printed = Print(out);
  return printed != kExitDone ? printed : faults.empty() ? kExitDone : kExitFailed;
}

int Explain(const RulesCommand& command) {
  absl::StatusOr<OwnerRules> rules = FindOwnerRules(command.rules);
  if (!rules.ok()) return Fail(rules.status());
  std::vector<std::string> lines = command.words, frames;
  if (lines.size() == 1 && lines[0] == "-") {
    lines.clear();
    for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
  }
  for (const std::string& line : lines) {
    std::vector<std::string> pasted = FramesOfPastedStack(line);
    frames.insert(frames.end(), pasted.begin(), pasted.end());
  }
  if (frames.empty()) return Fail("no frame to explain");
  for (std::string& frame : frames) frame = SafeText(frame);
  return Print(frames.size() == 1 ? ExplainFrame(*rules, frames[0]) : ExplainStack(*rules, frames));
}

// A starter file: one rule for each guessed owner and each unattributed prefix, heaviest first.
int Init(const RulesCommand& command) {
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(command.profile, command.rules);
  if (!loaded.ok()) return Fail(loaded.status());
  LoadedProfile& input = **loaded;
  Report report =
      BuildReport(input.profile, input.rules, input.attribution.get(), input.symbolizer.get(), ReportOptions{});
  struct Weight {
    uint64_t live_bytes = 0, allocated_bytes = 0;
  };
  std::map<std::string, Weight> weights;
  for (const SiteRow& row : report.sites) {
    std::string prefix;
    if (row.guessed && row.owner_frame >= 0) prefix = PrefixForFrame(*report.FramesOf(row)[row.owner_frame]);
    if (row.unattributed) prefix = input.attribution->SuggestedPrefix(row.site);
    if (prefix.empty()) continue;
    weights[prefix].live_bytes += row.tally.live_bytes;
    weights[prefix].allocated_bytes += row.tally.allocated_bytes;
  }
  std::vector<std::pair<std::string, Weight>> order(weights.begin(), weights.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::make_pair(a.second.live_bytes, a.second.allocated_bytes) >
           std::make_pair(b.second.live_bytes, b.second.allocated_bytes);
  });
  std::string out =
      "# Who owns which code. Longest prefix wins. Put the team's name for TEAM; rename modules as you "
      "like.\nprefix,module,team\n";
  for (const auto& [prefix, weight] : order)
    absl::StrAppend(&out, CsvCell(prefix), ",", CsvCell(SafeText(ModuleNameOf(prefix))), ",TEAM\n");
  return Print(out);
}

}  // namespace

std::string ModuleNameOf(std::string prefix) {
  for (const char* marker : {"lib:", "src:"}) {
    if (absl::StartsWith(prefix, marker)) prefix = prefix.substr(4);
  }
  prefix = absl::StrReplaceAll(prefix, {{"::", "."}});
  while (!prefix.empty() && (prefix.back() == '.' || prefix.back() == '$' || prefix.back() == '/')) prefix.pop_back();
  return prefix;
}

void AddRulesCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<RulesCommand>();
  CLI::App* rules = app.add_subcommand("rules", "owner rules: lint, explain, init, import, coverage, default");
  rules->require_subcommand(1);
  CLI::App* lint = rules->add_subcommand("lint", "checks a rules file; exit 1 if it has a fault");
  lint->add_option("FILE", options->words, "rules file (default: $CADASTRE_RULES, then ./owners.csv)")->expected(0, 1);
  lint->add_option("--rules", options->rules, "the same");
  // One word each: FILE may follow.
  lint->add_option("--profile", options->profiles,
                   "also tells the rules that nothing in this profile matched; may be given again")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  lint->footer("Example: cadastre rules lint owners.csv --profile nightly.cad");
  lint->callback([=] { invocation->status = Lint(*options); });
  CLI::App* explain = rules->add_subcommand("explain", "says which rule a frame or a stack falls to, and why");
  explain
      ->add_option(
          "FRAME", options->words,
          "a frame as reports print it (a function, with (LIBRARY) or (FILE:LINE) behind it), lib:FILE, src:PATH, "
          "class:NAME or thread:NAME; several, leaf first, are a stack, and so are \"a < b\" and \"root;...;leaf\"; "
          "- reads frames from stdin, one a line")
      ->required();
  explain->add_option("--rules", options->rules, "rules file");
  explain->footer(
      "Examples: cadastre rules explain 'os::malloc (libjvm.so)'\n"
      "          cadastre rules explain 'main;acme::billing::Load;deflateInit2_'");
  explain->callback([=] { invocation->status = Explain(*options); });
  CLI::App* init =
      rules->add_subcommand("init", "writes a starter rules file from what a profile has no owner for, by bytes");
  init->add_option("P", options->profile, "profile, PID, or one with @LABEL")->required();
  init->add_option("--rules", options->rules, "rules that are there already");
  init->footer("Example: cadastre rules init pay.cad > owners.csv");
  init->callback([=] { invocation->status = Init(*options); });
  CLI::App* builtin = rules->add_subcommand("default", "prints the built-in rules");
  builtin->footer("Example: cadastre rules default | grep zip");
  builtin->callback([=] { invocation->status = Default(); });
  AddRulesCoverageCommand(*rules, invocation);
  AddRulesImportCommand(*rules, invocation);
}

}  // namespace cadastre
