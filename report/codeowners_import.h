// CODEOWNERS and sources → owner rules; and whether rules that are there say the same.
//
// Packages become prefixes ("com.acme.billing."), directories of C and C++ `src:` prefixes. A package or directory that
// several teams share becomes one rule for each of its classes or files. A rule covers what lies below it, as far as
// the same team owns that. What rules cannot say is listed. Errors: a repository that cannot be read. Thread-safety:
// pure.
//
// Example: absl::StatusOr<ImportedRules> imported = ImportCodeowners(codeowners, "repo");
#ifndef CADASTRE_REPORT_CODEOWNERS_IMPORT_H_
#define CADASTRE_REPORT_CODEOWNERS_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/codeowners.h"
#include "symbolizer/owner_rules.h"

namespace cadastre {

struct ImportedRules {
  std::vector<Rule> rules;                 // by prefix
  std::vector<std::string> not_expressed;  // "CODEOWNERS:12: *.md @acme/docs: matches no source of a known language"
};

absl::StatusOr<ImportedRules> ImportCodeowners(const Codeowners& codeowners, const std::string& repository);

// Where rules and CODEOWNERS name different teams for a source: one line for each pair of lines and package. Sources
// that CODEOWNERS gives to nobody are not compared.
absl::StatusOr<std::vector<std::string>> CompareWithCodeowners(const Codeowners& codeowners,
                                                               const std::string& repository, const OwnerRules& rules);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CODEOWNERS_IMPORT_H_
