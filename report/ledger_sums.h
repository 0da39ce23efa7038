// Rows of the RSS ledger as `cadastre check` measures them: over several runs of one load, the mean of each, its error
// and who has it.
//
// Units: resident bytes. A row that a run does not have is 0 in it. Errors: none. Thread-safety: pure.
//
// Example: LedgerSums sums = LedgerSumsOf({first, second}); const RunSum* stacks = sums.FindRow("thread stacks");
#ifndef CADASTRE_REPORT_LEDGER_SUMS_H_
#define CADASTRE_REPORT_LEDGER_SUMS_H_

#include <string>
#include <vector>

#include "report/ledger.h"
#include "report/run_sums.h"

namespace cadastre {

inline constexpr char kRssRow[] = "RSS";  // the sum of all rows, where a row is named

struct LedgerSums {
  std::vector<RunSum> rows;                              // by LedgerName, and kRssRow
  std::vector<RunSum> owners;                            // `name` is the owner, `module` the row
  const RunSum* FindRow(const std::string& name) const;  // nullptr = no run has it
};

LedgerSums LedgerSumsOf(const std::vector<Ledger>& runs);

// The name of a row as the ledger spells it, whatever the case; empty: there is no such row.
std::string LedgerRowNamed(const std::string& text);
std::string LedgerRowNames();  // all of them, for a message

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LEDGER_SUMS_H_
