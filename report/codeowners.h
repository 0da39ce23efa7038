// CODEOWNERS files: which line owns a path. GitHub's rules, and GitLab's as far as they are the same.
//
// The last line that matches decides. Patterns are those of gitignore without negation: a leading or inner slash
// anchors them, a trailing one names a directory, "*" and "?" stay in one part of the path, "**" crosses parts; what
// matches a directory owns all below it, except that a last part "*" owns files alone. A line without owners says that
// nobody owns the path. Source: docs.github.com, "About code owners". Errors: none: lines that are not understood
// (GitLab's sections) are kept as such. Thread-safety: plain values.
//
// Example: const CodeownersLine* line = codeowners.Find("src/billing/Invoice.java");
#ifndef CADASTRE_REPORT_CODEOWNERS_H_
#define CADASTRE_REPORT_CODEOWNERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cadastre {

struct CodeownersLine {
  uint64_t line = 0;
  std::string pattern;
  std::vector<std::string> owners;  // "@acme/payments", "@anna", "anna@acme.com"
  bool understood = true;

  bool Matches(const std::string& path) const;
  std::string Team() const;  // the first owner's name: "payments", "anna", "anna@acme.com"; empty = nobody
};

struct Codeowners {
  std::string path;
  std::vector<CodeownersLine> lines;

  const CodeownersLine* Find(const std::string& path) const;  // nullptr: no line matches
};

absl::StatusOr<Codeowners> ReadCodeowners(const std::string& path);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CODEOWNERS_H_
