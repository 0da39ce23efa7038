// The result of `cadastre check` → text, JSON ("cadastre.check/1"), Markdown, JUnit XML, GitHub annotations.
//
// JUnit: a suite for each team (gates without one are in "cadastre"), a case for each gate, passing ones included;
// warnings are in system-out. GitHub: the worst nine that did not pass and a summary, as a step shows ten annotations;
// files are paths in the repository. Thread-safety: pure. Errors: none.
//
// Example: std::string xml = FormatCheck(check, CheckFormat::kJunit);
#ifndef CADASTRE_REPORT_FORMAT_CHECK_H_
#define CADASTRE_REPORT_FORMAT_CHECK_H_

#include <optional>
#include <string>
#include <vector>

#include "report/gates.h"

namespace cadastre {

struct Check {
  std::vector<std::string> profiles;  // as typed
  std::vector<GateResult> results;
  std::string method;  // with losses, interval and samples of each profile
  uint64_t runs = 0;
  std::vector<std::string> warnings;
};

enum class CheckFormat { kText, kJson, kMarkdown, kJunit, kGithub };
inline constexpr const char* kCheckFormatNames[] = {"text", "json", "markdown", "junit", "github"};
std::optional<CheckFormat> CheckFormatOf(const std::string& name);

std::string FormatCheck(const Check& check, CheckFormat format);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FORMAT_CHECK_H_
