// `cadastre check`: the CI gate.
#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/format.h"

namespace cadastre {
namespace {

struct CheckCommand {
  std::vector<std::string> profiles;
  std::string rules, max_unattributed, root;
  uint64_t min_samples = kDefaultMinSamples;
};

// One profile: 0 passed, 1 the gate failed, 2 unusable.
int CheckOne(const CheckCommand& command, const std::string& argument, std::optional<double> limit) {
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(argument, command.rules, command.root);
  if (!loaded.ok()) return Fail(loaded.status());
  LoadedProfile& input = **loaded;
  ReportOptions options;
  options.min_samples = command.min_samples;
  options.profile_argument = argument;
  if (input.where.at_peak) options.metric = Metric::kPeak;
  Report report = BuildReport(input.profile, input.rules, input.attribution.get(), input.symbolizer.get(), options);
  if (!report.trust.usable) return Fail(absl::StrCat(argument, ": ", report.trust.reason));
  // A guess is not an owner: without rules every guessed byte is one that nobody has claimed.
  Tally unowned = report.unattributed.tally;
  for (const Row& row : report.modules) {
    if (row.guessed) unowned.Add(row.tally);
  }
  double share = report.SharePercent(unowned);
  std::string measured = absl::StrCat("unattributed ", FormatShare(share, report.ShareErrorPercentOf(unowned)), " (",
                                      FormatBytes(EstimateOf(unowned, options.metric).value), " of ",
                                      FormatBytes(EstimateOf(report.totals, options.metric).value), ")");
  bool passed = !limit.has_value() || share <= *limit;
  std::string line = absl::StrCat(passed ? "pass " : "FAIL ", argument, ": ", measured);
  if (limit.has_value()) absl::StrAppend(&line, passed ? ", limit " : ", more than ", *limit, " %");
  absl::StrAppend(&line, "\n");
  if (!passed) {
    for (const RuleSuggestion& suggestion : report.suggestions) {
      absl::StrAppend(&line, "  ", suggestion.prefix, ",MODULE,TEAM  # ",
                      FormatBytes(static_cast<double>(suggestion.live_bytes)), "\n");
    }
    if (report.guesses)
      absl::StrAppend(&line, "  no rules file was given: cadastre rules init ", argument, " > owners.csv\n");
  }
  absl::StrAppend(&line, "  ", MethodLine(report), "\n");
  for (const std::string& warning : report.trust.warnings)
    absl::StrAppend(&line, "  warning: ", SafeText(warning), "\n");
  int printed = Print(line);
  return printed != kExitDone ? printed : passed ? kExitDone : kExitFailed;
}

int Check(const CheckCommand& command) {
  std::optional<double> limit;
  if (!command.max_unattributed.empty()) {
    absl::string_view text = command.max_unattributed;
    absl::ConsumeSuffix(&text, "%");
    double percent = 0;
    if (!absl::SimpleAtod(text, &percent) || !(percent >= 0 && percent <= 100)) {
      return Fail(absl::StrCat("--max-unattributed ", command.max_unattributed, ": write a percentage from 0 to 100"));
    }
    limit = percent;
  }
  int worst = kExitDone;
  for (const std::string& profile : command.profiles) worst = std::max(worst, CheckOne(command, profile, limit));
  return worst;
}

}  // namespace

void AddCheckCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<CheckCommand>();
  CLI::App* command =
      app.add_subcommand("check", "the CI gate: exit 0 pass, 1 gate failed, 2 input or an unusable profile");
  command->add_option("P", options->profiles, "profiles, PIDs, or one with @LABEL")->required();
  command->add_option("--max-unattributed", options->max_unattributed,
                      "largest share of live bytes without an owner, in percent");
  command->add_option("--rules", options->rules, "owner rules (default: $CADASTRE_RULES, then ./owners.csv)");
  command
      ->add_option(
          "--min-samples", options->min_samples,
          "fewer samples than this make a profile unusable (default 200); no matter where every allocation was "
          "recorded (interval=1)")
      ->check(WholeNumber(0));
  command->add_option("--root", options->root, "put before every library path, for a container");
  command->footer("Example: cadastre check pay.cad --rules owners.csv --max-unattributed 5");
  command->callback([=] { invocation->status = Check(*options); });
}

}  // namespace cadastre
