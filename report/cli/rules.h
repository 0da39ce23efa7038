// What the files of `cadastre rules` share. Thread-safety: main thread only. Errors: as command.h says.
//
// Example: AddRulesCoverageCommand(*rules, invocation);
#ifndef CADASTRE_REPORT_CLI_RULES_H_
#define CADASTRE_REPORT_CLI_RULES_H_

#include <string>

#include "report/cli/command.h"

namespace cadastre {

void AddRulesCoverageCommand(CLI::App& rules, Invocation* invocation);
void AddRulesImportCommand(CLI::App& rules, Invocation* invocation);

// What a module may be called whose rule has this prefix: "com.acme.billing." → "com.acme.billing".
std::string ModuleNameOf(std::string prefix);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_RULES_H_
