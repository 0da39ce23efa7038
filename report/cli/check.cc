// `cadastre check`: the CI gate.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "report/baseline.h"
#include "report/budgets.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/format.h"
#include "report/format_check.h"
#include "report/gates.h"
#include "report/growth_snapshot.h"
#include "report/ledger_source.h"
#include "report/output_file.h"
#include "report/run_sums.h"

namespace cadastre {
namespace {

struct CheckCommand {
  SymbolizerOptions symbols = DefaultSymbols();
  std::vector<std::string> profiles, writes;
  std::string rules, max_unattributed, budgets, teams, baseline, max_growth, save, format = "text";
  bool fail_on_unowned = false;
  uint64_t min_samples = kDefaultMinSamples;
  CLI::Option* min_samples_option = nullptr;
};

constexpr char kGates[] =
    "--max-unattributed PCT, --budgets FILE, --baseline FILE (with --max-growth PCT,SIZE), --fail-on-unowned, "
    "--min-samples N; --save FILE writes a baseline";

absl::StatusOr<double> ParsePercent(const std::string& option, const std::string& text) {
  absl::string_view number = text;
  absl::ConsumeSuffix(&number, "%");
  double percent = 0;
  if (!absl::SimpleAtod(number, &percent) || !(percent >= 0 && percent <= 100))
    return absl::InvalidArgumentError(absl::StrCat(option, " ", text, ": write a percentage from 0 to 100"));
  return percent;
}

absl::Status ParseMaxGrowth(const std::string& text, GateSettings* settings) {
  std::vector<std::string> parts = absl::StrSplit(text, ',');
  const absl::Status error = absl::InvalidArgumentError(
      absl::StrCat("--max-growth ", text, ": write a percentage and a size, both exceeded to fail: 10%,32m"));
  absl::string_view number = parts[0];
  if (parts.size() != 2 || !absl::ConsumeSuffix(&number, "%") || !absl::SimpleAtod(number, &settings->max_growth_pct) ||
      !(settings->max_growth_pct >= 0 && settings->max_growth_pct <= 1e6)) {
    return error;
  }
  absl::StatusOr<uint64_t> bytes = ParseSize(parts[1]);
  if (!bytes.ok()) return error;
  settings->max_growth_bytes = static_cast<double>(*bytes);
  return absl::OkStatus();
}

// teams.csv is found beside the rules, as owners.csv is found here.
std::string TeamsPath(const CheckCommand& command, const std::string& rules_path) {
  if (!command.teams.empty()) return command.teams;
  const size_t slash = rules_path.rfind('/');
  const std::string path = absl::StrCat(slash == std::string::npos ? "" : rules_path.substr(0, slash + 1), "teams.csv");
  struct stat status;
  return stat(path.c_str(), &status) == 0 ? path : "";
}

// What the profiles give, one after the other, so that only one is in memory.
struct Measurement {
  Check check;
  std::vector<GrowthSnapshot> runs;
  std::vector<std::pair<Metric, std::vector<GrowthSnapshot>>> others;
  bool wants_ledgers = false;
  std::vector<Ledger> ledgers;
  GateSettings settings;
};

// A guess is not an owner: without rules every guessed byte is one that nobody has claimed.
void DropGuesses(GrowthSnapshot* run) {
  for (GrowthSite& site : run->sites) {
    if (!site.guessed) continue;
    site.module = kUnattributedModule;
    site.team.clear();
  }
  run->samples.clear();
}

absl::Status Measure(const CheckCommand& command, const std::string& argument, Measurement* measurement) {
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(argument, command.rules, command.symbols);
  if (!loaded.ok()) return loaded.status();
  LoadedProfile& input = **loaded;
  auto report_of = [&](Metric metric) {
    ReportOptions options;
    options.min_samples = command.min_samples;
    options.metric = metric;
    return BuildReport(input.profile, input.rules, input.attribution.get(), input.symbolizer.get(), options);
  };
  const Report report = report_of(input.where.at_peak ? Metric::kPeak : Metric::kLive);
  if (!report.trust.usable) return absl::FailedPreconditionError(absl::StrCat(argument, ": ", report.trust.reason));
  measurement->runs.push_back(TakeGrowth(report, input.rules, argument, nullptr));
  DropGuesses(&measurement->runs.back());
  for (auto& [metric, runs] : measurement->others) {
    runs.push_back(TakeGrowth(report_of(metric), input.rules, argument, nullptr));
    DropGuesses(&runs.back());
  }
  if (measurement->wants_ledgers) {
    absl::StatusOr<ProcessMemory> memory = MemoryForProfile(input.profile, input.where.pid, {.nmt = NmtWanted::kNo});
    if (!memory.ok()) return memory.status();
    measurement->ledgers.push_back(BuildLedger(*memory, {&input.profile, input.attribution.get()}));
  }
  Check& check = measurement->check;
  absl::StrAppend(&check.method, check.method.empty() ? "" : " / ", MethodLine(report));
  for (const std::string& warning : report.trust.warnings) check.warnings.push_back(warning);
  if (!input.where.note.empty()) check.warnings.push_back(input.where.note);
  GateSettings& settings = measurement->settings;
  settings.rules_path = input.rules.path;
  if (settings.suggestions.empty()) {
    for (const RuleSuggestion& suggestion : report.suggestions) {
      settings.suggestions.push_back(
          absl::StrCat(suggestion.prefix, ",MODULE,TEAM  # ", FormatBytes(static_cast<double>(suggestion.live_bytes))));
    }
  }
  if (!settings.known_modules.empty()) return absl::OkStatus();
  settings.known_modules.push_back(kPlatformModule);
  for (const Rule& rule : input.rules.rules) {
    settings.known_modules.push_back(rule.module);
    settings.known_teams.push_back(rule.team);
  }
  return absl::OkStatus();
}

// What is written stands in a repository or is picked up by a build's server: others read it.
constexpr mode_t kForAll = 0644;

struct Write {
  CheckFormat format;
  std::string path;
};

absl::StatusOr<std::vector<Write>> ParseWrites(const std::vector<std::string>& words) {
  std::vector<Write> writes;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    std::optional<CheckFormat> format = CheckFormatOf(word.substr(0, equals));
    if (equals == std::string::npos || !format.has_value() || equals + 1 == word.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--write ", word, ": write FORMAT=FILE, with text, json, markdown, junit or github"));
    }
    writes.push_back({*format, word.substr(equals + 1)});
  }
  return writes;
}

// Limits, before anything is measured: bad ones end here.
absl::Status ReadSettings(const CheckCommand& command, Measurement* measurement, RunSums* baseline) {
  GateSettings& settings = measurement->settings;
  if (!command.max_unattributed.empty()) {
    absl::StatusOr<double> limit = ParsePercent("--max-unattributed", command.max_unattributed);
    if (!limit.ok()) return limit.status();
    settings.max_unattributed_pct = *limit;
  }
  settings.fail_on_unowned = command.fail_on_unowned;
  if (!command.max_growth.empty()) {
    if (absl::Status status = ParseMaxGrowth(command.max_growth, &settings); !status.ok()) return status;
    if (command.baseline.empty()) return absl::InvalidArgumentError("--max-growth: against what? give --baseline FILE");
  }
  if (!command.baseline.empty()) {
    absl::StatusOr<RunSums> read = ReadBaseline(command.baseline);
    if (!read.ok()) return read.status();
    *baseline = *std::move(read);
    settings.baseline = baseline;
    settings.baseline_path = command.baseline;
  }
  if (command.budgets.empty()) return absl::OkStatus();
  absl::StatusOr<std::vector<Budget>> budgets = ReadBudgets(command.budgets);
  if (!budgets.ok()) return budgets.status();
  const std::string today = absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
  settings.budgets = BudgetsOn(today, *budgets, &settings.expired_budgets);
  for (const Budget& budget : settings.budgets) {
    measurement->wants_ledgers |= budget.scope == BudgetScope::kRow;
    const bool asked = std::any_of(measurement->others.begin(), measurement->others.end(),
                                   [&](const auto& other) { return other.first == budget.metric; });
    if (budget.metric != Metric::kLive && !asked) measurement->others.push_back({budget.metric, {}});
  }
  return absl::OkStatus();
}

// Runs of one load that had different builds are two loads.
void WarnOfReplaced(const std::vector<GrowthSnapshot>& runs, Check* check) {
  for (const GrowthSnapshot& run : runs) {
    const std::string replaced = ReplacedBinaries(runs[0].builds, run.builds);
    if (replaced.empty()) continue;
    check->warnings.push_back(absl::StrCat("replaced between ", runs[0].label, " and ", run.label, ": ", replaced));
    return;
  }
}

absl::Status CompareWithBaseline(const RunSums& live, const GateSettings& settings, Check* check) {
  if (settings.baseline == nullptr) return absl::OkStatus();
  const RunSums& baseline = *settings.baseline;
  GrowthSnapshot now = SnapshotOf(live, check->profiles[0]), before = SnapshotOf(baseline, settings.baseline_path);
  if (std::string why = WhyNotComparable(before, now); !why.empty()) return absl::InvalidArgumentError(why);
  if (baseline.program != live.program) {
    return absl::InvalidArgumentError(absl::StrCat(settings.baseline_path, " is of ", baseline.program, ", ",
                                                   check->profiles[0], " of ", live.program));
  }
  if (baseline.rules_hash != live.rules_hash)
    check->warnings.push_back("the rules are not those of the baseline: what grew may have changed its owner");
  if (const std::string replaced = ReplacedBinaries(baseline.builds, live.builds); !replaced.empty())
    check->warnings.push_back(absl::StrCat("replaced since ", settings.baseline_path, ": ", replaced));
  if (live.uptime_s > 1.5 * baseline.uptime_s + 30 || baseline.uptime_s > 1.5 * live.uptime_s + 30) {
    check->warnings.push_back(absl::StrCat("cold against warm: the baseline was up ", FormatDuration(baseline.uptime_s),
                                           ", this ", FormatDuration(live.uptime_s)));
  }
  return absl::OkStatus();
}

int RunCheck(const CheckCommand& command) {
  const bool asked = command.min_samples_option->count() > 0;
  if (command.max_unattributed.empty() && command.budgets.empty() && command.baseline.empty() &&
      command.max_growth.empty() && !command.fail_on_unowned && command.save.empty() && !asked) {
    return Fail(absl::StrCat("check: no gate was given: ", kGates));
  }
  Measurement measurement;
  RunSums baseline;
  if (absl::Status status = ReadSettings(command, &measurement, &baseline); !status.ok()) return Fail(status);
  absl::StatusOr<std::vector<Write>> writes = ParseWrites(command.writes);
  if (!writes.ok()) return Fail(writes.status());
  Check& check = measurement.check;
  check.profiles = command.profiles;
  check.runs = command.profiles.size();
  std::set<std::string> given;
  for (const std::string& profile : command.profiles) {
    std::error_code ignored;
    // A run that counts twice makes the spread between runs smaller than it is.
    if (!given.insert(std::filesystem::weakly_canonical(profile, ignored).string()).second)
      return Fail(absl::StrCat(profile, ": given twice; each run counts once"));
    if (absl::Status status = Measure(command, profile, &measurement); !status.ok()) return Fail(status);
  }
  GateSettings& settings = measurement.settings;
  if (const std::string teams = TeamsPath(command, settings.rules_path); !teams.empty()) {
    absl::StatusOr<TeamContacts> contacts = ReadTeams(teams);
    if (!contacts.ok()) return Fail(contacts.status());
    settings.contacts = *std::move(contacts);
  }
  Measured measured;
  absl::StatusOr<RunSums> live = RunSumsOf(measurement.runs);
  if (!live.ok()) return Fail(live.status());
  measured.live = *std::move(live);
  WarnOfReplaced(measurement.runs, &check);
  for (auto& [metric, runs] : measurement.others) {
    absl::StatusOr<RunSums> sums = RunSumsOf(runs);
    if (!sums.ok()) return Fail(sums.status());
    measured.others.emplace_back(metric, *std::move(sums));
  }
  measured.ledger = LedgerSumsOf(measurement.ledgers);
  if (absl::Status status = CompareWithBaseline(measured.live, settings, &check); !status.ok()) return Fail(status);
  check.results = RunGates(measured, settings);
  if (asked) {
    GateResult enough;
    enough.gate = enough.name = "samples";
    enough.text = absl::StrCat("at least ", command.min_samples, " samples in each profile");
    check.results.push_back(enough);
  }
  for (const Write& output : *writes) {
    if (absl::Status status = WriteOutputFile(output.path, FormatCheck(check, output.format), kForAll); !status.ok())
      return Fail(status);
  }
  const bool failed = WorstOf(check.results) == GateOutcome::kFail;
  if (!command.save.empty() && failed) {
    Fail(absl::StrCat("--save ", command.save, ": not written, for a gate fails"));
  } else if (!command.save.empty()) {
    if (absl::Status status = WriteOutputFile(command.save, FormatBaseline(measured.live), kForAll); !status.ok())
      return Fail(status);
  }
  const int printed = check.results.empty() ? kExitDone : Print(FormatCheck(check, *CheckFormatOf(command.format)));
  if (printed != kExitDone) return printed;
  return failed ? kExitFailed : kExitDone;
}

}  // namespace

void AddCheckCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<CheckCommand>();
  CLI::App* command =
      app.add_subcommand("check", "the CI gate: exit 0 pass, 1 gate failed, 2 input or an unusable profile");
  command->add_option("P", options->profiles, "profiles, PIDs, or one with @LABEL; several are runs of one load")
      ->required();
  command->add_option("--max-unattributed", options->max_unattributed,
                      "largest share of live bytes without an owner, in percent");
  command->add_option("--budgets", options->budgets, "limits: scope,name,metric,limit,until,reason");
  command->add_option("--baseline", options->baseline, "what --save wrote: fails where a module has grown since");
  command->add_option("--max-growth", options->max_growth,
                      "with --baseline: fails where both are exceeded (default 10%,32m)");
  command->add_flag("--fail-on-unowned", options->fail_on_unowned,
                    "fails on memory without an owner and on modules without a team");
  options->min_samples_option = AddMinSamplesOption(command, &options->min_samples);
  command->add_option("--save", options->save, "writes a baseline: a small text file for version control");
  command->add_option("--format", options->format, "text (default), json, markdown, junit or github")
      ->check(OneOf({"text", "json", "markdown", "junit", "github"}));
  command->add_option("--write", options->writes, "FORMAT=FILE: the same into a file as well: junit=cadastre.xml")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  AddRulesOption(command, &options->rules);
  command->add_option("--teams", options->teams, "team,contact (default: teams.csv beside the rules)");
  AddSymbolOptions(command, &options->symbols);
  command->footer(
      "A gate fails where the estimate minus two standard errors is over its limit, and warns in between.\n"
      "Example: cadastre check pay.cad --rules owners.csv --max-unattributed 5 --budgets budgets.csv");
  command->callback([=] { invocation->status = RunCheck(*options); });
}

}  // namespace cadastre
