// `cadastre rules import`.
#include "absl/strings/str_cat.h"
#include "report/cli/rules.h"
#include "report/codeowners_import.h"
#include "report/csv_cell.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

struct ImportCommand {
  std::string codeowners, repository = ".", rules;
  bool check = false;
};

int Check(const ImportCommand& command, const Codeowners& codeowners) {
  absl::StatusOr<OwnerRules> rules = FindOwnerRules(command.rules);
  if (!rules.ok()) return Fail(rules.status());
  if (rules->path.empty()) return Fail("no rules file: name one, set $CADASTRE_RULES, or write ./owners.csv");
  absl::StatusOr<std::vector<std::string>> differences = CompareWithCodeowners(codeowners, command.repository, *rules);
  if (!differences.ok()) return Fail(differences.status());
  std::string out;
  for (const std::string& line : *differences) absl::StrAppend(&out, SafeText(line), "\n");
  absl::StrAppend(&out, rules->path, " and ", codeowners.path, ": ",
                  differences->empty() ? "no difference" : absl::StrCat(differences->size(), " differences"), "\n");
  int printed = Print(out);
  return printed != kExitDone ? printed : differences->empty() ? kExitDone : kExitFailed;
}

int Import(const ImportCommand& command) {
  absl::StatusOr<Codeowners> codeowners = ReadCodeowners(command.codeowners);
  if (!codeowners.ok()) return Fail(codeowners.status());
  if (command.check) return Check(command, *codeowners);
  absl::StatusOr<ImportedRules> imported = ImportCodeowners(*codeowners, command.repository);
  if (!imported.ok()) return Fail(imported.status());
  if (imported->rules.empty())
    return Fail(absl::StrCat(command.repository, " has no source that ", command.codeowners, " gives to anybody"));
  std::string out = "prefix,module,team\n";
  for (const Rule& rule : imported->rules) {
    absl::StrAppend(&out, CsvCell(RulePrefixText(rule)), ",", CsvCell(SafeText(rule.module)), ",",
                    CsvCell(SafeText(rule.team)), "\n");
  }
  for (const std::string& line : imported->not_expressed) absl::StrAppend(&out, "# not said: ", SafeText(line), "\n");
  return Print(out);
}

}  // namespace

void AddRulesImportCommand(CLI::App& rules, Invocation* invocation) {
  auto options = std::make_shared<ImportCommand>();
  CLI::App* command =
      rules.add_subcommand("import", "rules from CODEOWNERS and the packages and directories of the sources");
  command->add_option("--codeowners", options->codeowners, "the CODEOWNERS file")->required();
  command->add_option("--repo", options->repository, "the repository that it is of (default: here)");
  command->add_flag("--check", options->check,
                    "compares the rules that are there with it instead; exit 1 if they differ");
  command->add_option("--rules", options->rules, "for --check (default: $CADASTRE_RULES, then ./owners.csv)");
  command->footer("Example: cadastre rules import --codeowners .github/CODEOWNERS --repo . > owners.csv");
  command->callback([=] { invocation->status = Import(*options); });
}

}  // namespace cadastre
