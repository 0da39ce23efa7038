// `cadastre rollup`.
#include <cmath>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/rollup.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

struct RollupCommand {
  std::string rules, heap, stacks, limit = "10", format = "text";
  bool built_in = false;
};

int RollupFiles(const RollupCommand& command) {
  double limit_percent = 0;
  if (!absl::SimpleAtod(command.limit, &limit_percent) || !(limit_percent >= 0 && limit_percent <= 100))
    return Fail(absl::StrCat("MAX_PCT ", command.limit, ": write a percentage from 0 to 100"));
  absl::StatusOr<OwnerRules> rules = FindOwnerRules(command.rules);
  if (!rules.ok()) return Fail(rules.status());
  if (!command.built_in) std::erase_if(rules->rules, [](const Rule& rule) { return rule.built_in; });
  absl::StatusOr<Rollup> rollup = RollUp(*rules, command.heap, command.stacks);
  if (!rollup.ok()) return Fail(rollup.status());
  if (command.format == "csv") {  // a table has no room for them
    for (const std::string& warning : rollup->warnings) std::cerr << "cadastre: warning: " << SafeText(warning) << "\n";
  }
  int printed = Print(command.format == "json"       ? FormatRollupJson(*rollup, limit_percent)
                      : command.format == "csv"      ? FormatRollupCsv(*rollup)
                      : command.format == "markdown" ? FormatRollupMarkdown(*rollup, limit_percent)
                                                     : FormatRollupText(*rollup, limit_percent));
  if (printed != kExitDone) return printed;
  return rollup->UnattributedPercent() > limit_percent ? kExitFailed : kExitDone;
}

}  // namespace

void AddRollupCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<RollupCommand>();
  CLI::App* command = app.add_subcommand("rollup", "a heap by class and collapsed stacks, summed by module and team");
  command->add_option("RULES", options->rules, "rules file; only what stands in it counts")->required();
  command
      ->add_option("HEAP", options->heap,
                   "class,retained_bytes as CSV, or what jcmd PID GC.class_histogram printed (shallow bytes)")
      ->required();
  command->add_option("STACKS", options->stacks, "collapsed stacks: root;...;leaf COUNT")->required();
  command->add_option(
      "MAX_PCT", options->limit,
      "exit 1 if more is unattributed: percent of the bytes, of the samples without bytes (default 10)");
  command->add_option("--format", options->format, "text (default), json, csv or markdown")
      ->check(OneOf({"text", "json", "csv", "markdown"}));
  command->add_flag("--built-in", options->built_in, "the built-in rules count as well (cadastre rules default)");
  command->footer("Example: cadastre rollup owners.csv heap.csv stacks.txt 5");
  command->callback([=] { invocation->status = RollupFiles(*options); });
}

}  // namespace cadastre
