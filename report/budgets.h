// Limits and names that a repository keeps for `cadastre check`: budgets.csv and teams.csv.
//
//   scope,name,metric,limit,until,reason
//   module,billing.pdf,live,200m,,
//   module,billing.pdf,live,350m,2026-09-30,new renderer, JIRA-812
//   team,payments,live,1g,,
//   row,thread stacks,resident,64m,,
// scope is module, team, total (without a name) or row: one of the RSS ledger's, or RSS, the sum of all. metric is
// live, peak, allocated, count, mapped or share (percent of what is live), and of a row resident; a limit is a size (k,
// m, g), a whole number (count) or a percentage. A row of the file with `until` stands instead of the one without until
// the end of that day (UTC); when it has run out and nothing stands behind it, that is a failure. `until` and `reason`
// may be left out. teams.csv is `team,contact`. Both: UTF-8, RFC 4180, `#` comments. Errors: "FILE:LINE:COLUMN: what".
// Thread-safety: reads files.
//
// Example: absl::StatusOr<std::vector<Budget>> budgets = ReadBudgets("perf/budgets.csv");
#ifndef CADASTRE_REPORT_BUDGETS_H_
#define CADASTRE_REPORT_BUDGETS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/estimate.h"

namespace cadastre {

enum class BudgetScope { kModule, kTeam, kTotal, kRow };

struct Budget {
  BudgetScope scope = BudgetScope::kModule;
  std::string name;
  bool is_share = false;          // percent of the live bytes
  Metric metric = Metric::kLive;  // of kRow: resident bytes, whatever stands here
  double limit = 0;               // bytes, blocks or percent
  std::string until;              // "2026-09-30"; empty = for good
  std::string reason;
  std::string file;
  int line = 0;
};

absl::StatusOr<std::vector<Budget>> ReadBudgets(const std::string& path);

// Those that count on `today` ("2026-01-31"): of the rows for one thing the one with a day that has not passed, else
// the one without; `expired` gets rows that have run out with nothing behind them.
std::vector<Budget> BudgetsOn(const std::string& today, const std::vector<Budget>& budgets,
                              std::vector<Budget>* expired);

using TeamContacts = std::map<std::string, std::string>;
absl::StatusOr<TeamContacts> ReadTeams(const std::string& path);

const char* BudgetScopeName(BudgetScope scope);
std::string BudgetMetricName(const Budget& budget);  // "live", "share", "resident"

}  // namespace cadastre

#endif  // CADASTRE_REPORT_BUDGETS_H_
