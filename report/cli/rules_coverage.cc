// `cadastre rules coverage`.
#include "report/rules_coverage.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/cli/rules.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

struct CoverageCommand {
  std::string rules;
  std::vector<std::string> jars, directories, sources;
  bool weak = false;
};

std::string Members(const CoverageGap& gap) {
  const char* plural = gap.members == 1 ? "" : absl::EndsWith(gap.what, "s") ? "es" : "s";
  if (gap.what == "library" && gap.members != 1) return absl::StrCat(gap.members, " libraries");
  return absl::StrCat(gap.members, " ", gap.what, plural);
}

std::string Table(const std::vector<CoverageGap>& gaps) {
  TextTable table(
      {{"PREFIX", Align::kLeft, true}, {"HAS"}, {"HELD BY", Align::kLeft, true}, {"IN", Align::kLeft, true}});
  for (const CoverageGap& gap : gaps) {
    const Rule* rule = gap.held_by;
    table.AddRow({SafeText(gap.prefix), Members(gap),
                  rule == nullptr ? "" : SafeText(absl::StrCat(RulePlace(*rule), " ", RulePrefixText(*rule))),
                  SafeText(gap.where)});
  }
  return gaps.empty() ? "" : table.Print(kTextWidth, {});
}

int Coverage(const CoverageCommand& command) {
  absl::StatusOr<OwnerRules> rules = FindOwnerRules(command.rules);
  if (!rules.ok()) return Fail(rules.status());
  if (rules->path.empty()) return Fail("no rules file: name one, set $CADASTRE_RULES, or write ./owners.csv");
  if (command.jars.empty() && command.directories.empty() && command.sources.empty())
    return Fail("nothing to look at: name a --jar, a --dir or a --src");
  RulesCoverage coverage(*rules);
  TakeMember take = [&](const CodeMember& member) { coverage.Take(member); };
  absl::Status status;
  for (const std::string& path : command.jars) status.Update(ReadJar(path, take));
  for (const std::string& path : command.directories) status.Update(ReadBuildDirectory(path, take));
  for (const std::string& path : command.sources) status.Update(ReadSourceDirectory(path, take));
  if (!status.ok()) return Fail(status);
  // A path without code would pass every time.
  if (coverage.members() == 0) return Fail("no class, library or source was found there");
  std::vector<CoverageGap> unowned = coverage.Unowned(), weak = coverage.Weak();
  std::string out = Table(unowned);
  if (command.weak && !weak.empty()) absl::StrAppend(&out, out.empty() ? "" : "\n", Table(weak));
  absl::StrAppend(&out, unowned.size(), " without an owner, ", weak.size(), " held by a catch-all alone, of ",
                  coverage.members(), " classes, functions, libraries and sources\n");
  int printed = Print(out);
  return printed != kExitDone ? printed : unowned.empty() ? kExitDone : kExitFailed;
}

}  // namespace

void AddRulesCoverageCommand(CLI::App& rules, Invocation* invocation) {
  auto options = std::make_shared<CoverageCommand>();
  CLI::App* command = rules.add_subcommand(
      "coverage", "packages, namespaces and libraries of a build that no rule owns; exit 1 if there are any");
  command->add_option("--jar", options->jars, "jars, WARs; jars in them are read too");
  command->add_option("--dir", options->directories,
                      "directories of a build: jars, libraries, class files below a root");
  command->add_option("--src", options->sources, "directories of sources: package and namespace lines, src: rules");
  command->add_flag("--weak", options->weak,
                    "also lists what only a catch-all holds: a rule out of which others cut parts, or one like com.");
  command->add_option("--rules", options->rules, "rules file (default: $CADASTRE_RULES, then ./owners.csv)");
  command->footer("Example: cadastre rules coverage --rules owners.csv --jar build/libs/app.jar");
  command->callback([=] { invocation->status = Coverage(*options); });
}

}  // namespace cadastre
