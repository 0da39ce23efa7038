// `cadastre diff`: what grew between snapshots, and whether it is a leak.
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/cli/growth_input.h"
#include "report/format_growth.h"

namespace cadastre {
namespace {

struct DiffCommand {
  std::vector<std::string> snapshots;
  GrowthInput input{.symbols = DefaultSymbols()};
  std::string by = "module", format = "text", metric = "live", requests;
  std::optional<size_t> top;
};

int Diff(DiffCommand command) {
  if (command.snapshots.size() < 2) return Fail("diff: two snapshots at least are needed: cadastre diff A B");
  GrowthOptions options;
  for (absl::string_view number : absl::StrSplit(command.requests, ',', absl::SkipEmpty())) {
    double count = 0;
    if (!absl::SimpleAtod(number, &count) || !(count >= 0))
      return Fail(absl::StrCat("--requests ", command.requests, ": write one number for each snapshot: 0,12000,24500"));
    options.requests.push_back(count);
  }
  if (command.metric == "mapped") command.input.metric = Metric::kMapped;
  std::vector<GrowthSnapshot> snapshots;
  for (const std::string& argument : command.snapshots) {
    absl::StatusOr<GrowthSnapshot> snapshot =
        LoadGrowth(argument, command.input, snapshots.empty() ? nullptr : &snapshots.front());
    if (!snapshot.ok()) return Fail(snapshot.status());
    snapshots.push_back(*std::move(snapshot));
  }
  absl::StatusOr<Growth> growth = CompareSnapshots(snapshots, options);
  if (!growth.ok()) return Fail(growth.status());
  const GrowthBy by = command.by == "team"   ? GrowthBy::kTeam
                      : command.by == "site" ? GrowthBy::kSite
                                             : GrowthBy::kModule;
  if (command.format == "json") {
    return PrintPieces([&](TextSink sink) { WriteGrowthJson(*growth, command.top, sink); });
  }
  if (command.format == "csv") {
    return PrintPieces([&](TextSink sink) { WriteGrowthCsv(*growth, by, command.top, sink); });
  }
  if (command.format == "markdown") return Print(FormatGrowthMarkdown(*growth, by, command.top.value_or(10)));
  return Print(FormatGrowthText(*growth, by, command.top.value_or(10), StyleForDescriptor(STDOUT_FILENO)));
}

}  // namespace

void AddDiffCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<DiffCommand>();
  CLI::App* command = app.add_subcommand("diff", "what grew between snapshots; from three on whether it goes on");
  command
      ->add_option("SNAPSHOTS", options->snapshots,
                   "oldest first: P@LABEL, P@2h, profiles of other processes, or baselines of check --save")
      ->required();
  command->add_option("--by", options->by, "module (default), team or site")->check(OneOf({"module", "team", "site"}));
  command->add_option("--metric", options->metric, "live (default) or mapped")->check(OneOf({"live", "mapped"}));
  command->add_option("--requests", options->requests,
                      "a counter of the program at each snapshot, for a rate per 1,000: 0,12000,24500");
  AddRulesOption(command, &options->input.rules);
  command->add_option("--top", options->top, "rows to print; JSON: sites (default: 10; JSON and CSV: all)")
      ->check(WholeNumber(0));
  command->add_option("--format", options->format, "text (default), json, csv or markdown")
      ->check(OneOf({"text", "json", "csv", "markdown"}));
  AddSymbolOptions(command, &options->input.symbols);
  command->footer("Example: cadastre diff pay.cad@10:20 pay.cad@11:20 pay.cad@last --by site");
  command->callback([=] { invocation->status = Diff(*options); });
}

}  // namespace cadastre
