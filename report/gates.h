// The gates of `cadastre check`: measured sums against limits, budgets and a baseline.
//
// A gate fails where the estimate minus two standard errors is over its limit, and warns where only the estimate is: a
// build must not break on noise. With several runs the error has the spread between them (run_sums). A limit that two
// standard errors of a row at that limit reach down to zero from cannot be judged at this interval: that is a warning
// too. A change against the baseline that memory has because other rules own it now is no growth: it warns and says so.
// Units: bytes; shares in percent. Errors: none. Thread-safety: pure.
//
// Example: std::vector<GateResult> results = RunGates(measured, settings); int status = WorstOf(results);
#ifndef CADASTRE_REPORT_GATES_H_
#define CADASTRE_REPORT_GATES_H_

#include <optional>
#include <string>
#include <vector>

#include "report/budgets.h"
#include "report/ledger_sums.h"
#include "report/run_sums.h"

namespace cadastre {

enum class GateOutcome { kPass, kWarn, kFail };

struct GateSite {
  std::string stack;
  double bytes = 0;
  double grown_bytes = 0;  // against the baseline; 0 = not known
};

struct GateResult {
  std::string gate;  // "unattributed", "budget", "growth", "unowned", "samples"
  std::string name;  // "module billing.pdf live", what is judged
  std::string team, contact;
  GateOutcome outcome = GateOutcome::kPass;
  std::string text;   // one line: how much, against what
  double excess = 0;  // what it is over by, as a share of the limit: the worst first
  std::string file;   // of the repository, where the limit stands; empty = on the command line
  int line = 0;
  std::vector<GateSite> sites;     // of a gate that did not pass: the three that matter
  std::vector<std::string> hints;  // lines that say what to do
};

struct GateSettings {
  std::optional<double> max_unattributed_pct;
  bool fail_on_unowned = false;
  std::vector<Budget> budgets, expired_budgets;  // BudgetsOn
  const RunSums* baseline = nullptr;
  std::string baseline_path;
  double max_growth_pct = 10, max_growth_bytes = 32 << 20;  // both exceeded
  TeamContacts contacts;
  std::string rules_path;                // for annotations
  std::vector<std::string> suggestions;  // rules for what nobody owns
  // Modules and teams that the rules know: a budget of another name is a slip of the pen.
  std::vector<std::string> known_modules, known_teams;
};

// One measurement for each metric that a budget asks for; `live` is always there.
struct Measured {
  RunSums live;
  std::vector<std::pair<Metric, RunSums>> others;
  LedgerSums ledger;  // empty where no budget is of a row
  const RunSums* For(Metric metric) const;
};

// The worst first, passing ones last, in order of name.
std::vector<GateResult> RunGates(const Measured& measured, const GateSettings& settings);

const char* GateOutcomeName(GateOutcome outcome);  // "pass", "warn", "FAIL"
GateOutcome WorstOf(const std::vector<GateResult>& results);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_GATES_H_
