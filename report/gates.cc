#include "report/gates.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "report/rows.h"
#include "report/stack_walk.h"

namespace cadastre {
namespace {

constexpr double kGateErrors = 2;
constexpr size_t kGateSites = 3;
// Judged where 2 errors of an owner that holds its whole limit are less than the limit: 2 sqrt(R L / n) < L.
double SmallestLimit(double weight_bytes, double runs) { return kGateErrors * kGateErrors * weight_bytes / runs; }

std::string GatePercent(double percent) { return FormatShare(percent, 0); }
std::string GateAmount(double value, double error, Metric metric) {
  return metric == Metric::kCount ? FormatCount(value, error) : FormatBytes(value, error);
}

// How far beyond the error: two standard errors fail.
std::string Beyond(double excess, double error) {
  if (!(error > 0)) return "without an error";
  return absl::StrCat("by ", std::round(10 * excess / error) / 10, " standard errors");
}

GateOutcome Judge(double value, double error, double limit) {
  return value - kGateErrors * error > limit ? GateOutcome::kFail
         : value > limit                     ? GateOutcome::kWarn
                                             : GateOutcome::kPass;
}

class Gates {
 public:
  Gates(const Measured& measured, const GateSettings& settings)
      : measured_(measured), live_(measured.live), settings_(settings) {}

  std::vector<GateResult> Run() {
    if (settings_.max_unattributed_pct.has_value()) Unattributed();
    if (settings_.fail_on_unowned) Unowned();
    for (const Budget& budget : settings_.budgets) BudgetGate(budget);
    for (const Budget& budget : settings_.expired_budgets) Expired(budget);
    if (settings_.baseline != nullptr) Growth();
    for (GateResult& result : results_) {
      auto contact = settings_.contacts.find(result.team);
      if (contact != settings_.contacts.end()) result.contact = contact->second;
    }
    std::stable_sort(results_.begin(), results_.end(), [](const GateResult& a, const GateResult& b) {
      if (a.outcome != b.outcome) return a.outcome > b.outcome;
      if (a.outcome != GateOutcome::kPass && a.excess != b.excess) return a.excess > b.excess;
      return a.name < b.name;
    });
    return std::move(results_);
  }

 private:
  static RunSum None(const std::string& name) {
    RunSum none;
    none.name = name;
    return none;
  }

  RunSum SumOf(const RunSums& sums, BudgetScope scope, const std::string& name) const {
    const RunSum* found = scope == BudgetScope::kTotal  ? &sums.total
                          : scope == BudgetScope::kTeam ? sums.FindTeam(name)
                                                        : sums.FindModule(name);
    return found != nullptr ? *found : None(name);
  }

  // Who has most of a row of the ledger.
  std::vector<GateSite> OwnersOf(const std::string& row) const {
    std::vector<GateSite> owners;
    for (const RunSum& owner : measured_.ledger.owners) {
      if (owner.module == row) owners.push_back({owner.name, owner.mean, 0});
    }
    return Heaviest(std::move(owners), false);
  }

  static std::vector<GateSite> Heaviest(std::vector<GateSite> sites, bool grown) {
    std::stable_sort(sites.begin(), sites.end(), [&](const GateSite& a, const GateSite& b) {
      return grown ? a.grown_bytes > b.grown_bytes : a.bytes > b.bytes;
    });
    if (sites.size() > kGateSites) sites.resize(kGateSites);
    return sites;
  }

  // The heaviest of an owner, or with a baseline those that grew most.
  std::vector<GateSite> SitesOf(const RunSums& sums, BudgetScope scope, const std::string& name, bool grown) const {
    std::vector<GateSite> sites;
    for (const RunSum& site : sums.sites) {
      const std::string team = site.module == kUnattributedModule ? kUnattributedModule : site.team;
      if (scope != BudgetScope::kTotal && name != (scope == BudgetScope::kTeam ? team : site.module)) continue;
      GateSite row{site.name, site.mean, 0};
      if (grown) row.grown_bytes = site.mean - BaselineBytesOf(site.identity);
      sites.push_back(std::move(row));
    }
    return Heaviest(std::move(sites), grown);
  }

  double BaselineBytesOf(const std::string& identity) const {
    double bytes = 0;
    for (const RunSum& site : settings_.baseline->sites) bytes += site.identity == identity ? site.mean : 0;
    return bytes;
  }

  void AddHints(GateResult* result) const {
    for (const std::string& suggestion : settings_.suggestions) result->hints.push_back(suggestion);
    if (live_.guesses) result->hints.push_back("no rules file was given: cadastre rules init P > owners.csv");
  }

  void Unattributed() {
    const RunSum unowned = SumOf(live_, BudgetScope::kModule, kUnattributedModule);
    const double limit = *settings_.max_unattributed_pct;
    GateResult result;
    result.gate = result.name = "unattributed";
    result.file = settings_.rules_path;
    result.line = 1;
    result.outcome = Judge(unowned.share_pct, unowned.share_error_pct, limit);
    result.excess = limit > 0 ? (unowned.share_pct - limit) / limit : unowned.share_pct;
    result.text = absl::StrCat("unattributed ", FormatShare(unowned.share_pct, unowned.share_error_pct), " (",
                               FormatBytes(unowned.mean, unowned.error), " of ", FormatBytes(live_.total.mean), "), ",
                               result.outcome == GateOutcome::kPass ? "limit " : "more than ", Number(limit), " %");
    if (result.outcome != GateOutcome::kPass) {
      absl::StrAppend(&result.text, ", over ", Beyond(unowned.share_pct - limit, unowned.share_error_pct));
      result.sites = SitesOf(live_, BudgetScope::kModule, kUnattributedModule, false);
      AddHints(&result);
    }
    results_.push_back(std::move(result));
  }

  static std::string Number(double value) { return absl::StrCat(std::round(value * 100) / 100); }

  void Unowned() {
    std::vector<RunSum> nobody;
    for (const RunSum& module : live_.modules) {
      const bool without_team = module.team.empty() && !IsPlatformModule(module.name);
      if (module.name == kUnattributedModule || without_team) nobody.push_back(module);
    }
    std::stable_sort(nobody.begin(), nobody.end(), [](const RunSum& a, const RunSum& b) { return a.mean > b.mean; });
    GateResult result;
    result.gate = result.name = "unowned";
    result.file = settings_.rules_path;
    result.line = 1;
    for (const RunSum& module : nobody) {
      const GateOutcome outcome = Judge(module.mean, module.error, 0);
      result.outcome = std::max(result.outcome, outcome);
      if (outcome == GateOutcome::kPass) continue;
      result.excess += module.share_pct / 100;
      absl::StrAppend(
          &result.text, result.text.empty() ? "" : ", ", module.name,
          module.name == kUnattributedModule ? " " : " has no team: ", FormatBytes(module.mean, module.error));
    }
    if (result.outcome == GateOutcome::kPass) {
      result.text = "every byte has a module and a team";
    } else {
      result.sites = SitesOf(live_, BudgetScope::kModule, nobody.front().name, false);
      AddHints(&result);
    }
    results_.push_back(std::move(result));
  }

  bool IsKnown(const Budget& budget) const {
    if (budget.scope == BudgetScope::kTotal || budget.scope == BudgetScope::kRow || budget.name == kUnattributedModule)
      return true;
    const std::vector<std::string>& known =
        budget.scope == BudgetScope::kTeam ? settings_.known_teams : settings_.known_modules;
    return std::find(known.begin(), known.end(), budget.name) != known.end();
  }

  static std::string NameOf(const Budget& budget) {
    return absl::StrCat(BudgetScopeName(budget.scope), budget.name.empty() ? "" : " ", budget.name, " ",
                        BudgetMetricName(budget));
  }

  void BudgetGate(const Budget& budget) {
    const RunSums& sums = *measured_.For(budget.metric);
    const bool is_row = budget.scope == BudgetScope::kRow;
    const RunSum* row = is_row ? measured_.ledger.FindRow(budget.name) : nullptr;
    const RunSum sum = row != nullptr ? *row : is_row ? None(budget.name) : SumOf(sums, budget.scope, budget.name);
    const double value = budget.is_share ? sum.share_pct : sum.mean;
    const double error = budget.is_share ? sum.share_error_pct : sum.error;
    GateResult result;
    result.gate = "budget";
    result.name = NameOf(budget);
    result.team = budget.scope == BudgetScope::kTeam ? budget.name : sum.team;
    result.file = budget.file;
    result.line = budget.line;
    result.outcome = Judge(value, error, budget.limit);
    result.excess = budget.limit > 0 ? (value - budget.limit) / budget.limit : value;
    auto amount = [&](double v, double e) {
      return budget.is_share ? FormatShare(v, e) : GateAmount(v, e, budget.metric);
    };
    result.text = absl::StrCat(result.name, " ", amount(value, error), ", ",
                               result.outcome == GateOutcome::kPass ? "limit " : "over ", amount(budget.limit, 0));
    if (!budget.until.empty()) absl::StrAppend(&result.text, " until ", budget.until);
    if (!budget.reason.empty()) absl::StrAppend(&result.text, " (", budget.reason, ")");
    if (result.outcome != GateOutcome::kPass) {
      absl::StrAppend(&result.text, ": ", amount(value - budget.limit, 0), " too much, ",
                      Beyond(value - budget.limit, error));
      result.sites = is_row ? OwnersOf(budget.name)
                            : SitesOf(sums, budget.scope, budget.name,
                                      settings_.baseline != nullptr && budget.metric == Metric::kLive);
    }
    const double smallest = SmallestLimit(static_cast<double>(sums.interval_bytes), static_cast<double>(sums.runs));
    const bool sampled =
        !is_row && sums.interval_bytes > 1 &&
        (budget.metric == Metric::kLive || budget.metric == Metric::kPeak || budget.metric == Metric::kAllocated);
    if (!budget.is_share && sampled && budget.limit <= smallest) {
      if (result.outcome == GateOutcome::kPass) result.outcome = GateOutcome::kWarn;
      // At the limit, one standard error of a quarter of it: R = L n / 16.
      const auto needed = static_cast<uint64_t>(budget.limit * static_cast<double>(sums.runs) / 16);
      result.hints.push_back(absl::StrCat(
          "the budget is below what an interval of ", FormatInterval(sums.interval_bytes), " can resolve (",
          FormatBytes(smallest),
          "): record with interval=", needed >= 2048 ? absl::StrCat(needed / 1024, "k") : std::string("1")));
    }
    if (!IsKnown(budget)) {
      if (result.outcome == GateOutcome::kPass) result.outcome = GateOutcome::kWarn;
      result.hints.push_back(absl::StrCat("no rule has the ", BudgetScopeName(budget.scope), " ", budget.name));
    }
    results_.push_back(std::move(result));
  }

  void Expired(const Budget& budget) {
    GateResult result;
    result.gate = "budget";
    result.name = NameOf(budget);
    if (budget.scope != BudgetScope::kRow)
      result.team = budget.scope == BudgetScope::kTeam ? budget.name : SumOf(live_, budget.scope, budget.name).team;
    result.file = budget.file;
    result.line = budget.line;
    result.outcome = GateOutcome::kFail;
    result.excess = 1;
    result.text = absl::StrCat(result.name, ": the budget ended on ", budget.until,
                               budget.reason.empty() ? "" : absl::StrCat(" (", budget.reason, ")"),
                               ", and none stands behind it");
    results_.push_back(std::move(result));
  }

  // Bytes of this module that sites have which another module had in the baseline, by its rules.
  double MovedHere(const std::string& module) const {
    if (settings_.baseline->rules_hash == live_.rules_hash) return 0;
    std::map<std::string, double> elsewhere;
    std::map<std::string, double> here;
    for (const RunSum& site : settings_.baseline->sites)
      (site.module == module ? here : elsewhere)[site.identity] += site.mean;
    double moved = 0;
    for (const RunSum& site : live_.sites) {
      if (site.module != module || here.contains(site.identity)) continue;
      auto before = elsewhere.find(site.identity);
      if (before != elsewhere.end()) moved += std::min(site.mean, before->second);
    }
    return moved;
  }

  void Growth() {
    const RunSums& baseline = *settings_.baseline;
    auto judge = [&](const RunSum& now, const RunSum& before, BudgetScope scope, const std::string& title) {
      GateResult result;
      result.gate = "growth";
      result.name = title;
      result.team = now.team.empty() ? before.team : now.team;
      result.file = settings_.baseline_path;
      result.line = 1;
      const double grown = now.mean - before.mean;
      // One run says nothing of how much runs differ: the baseline's may.
      const double spread = before.spread / std::sqrt(static_cast<double>(live_.runs));
      const double error = std::hypot(std::max(now.error, spread), before.error);
      const double limit = std::max(settings_.max_growth_pct / 100 * before.mean, settings_.max_growth_bytes);
      result.outcome = Judge(grown, error, limit);
      result.excess = limit > 0 ? (grown - limit) / limit : grown;
      const std::string sign = grown >= 0 ? "+" : "";
      result.text = absl::StrCat(title, " ", sign, FormatBytes(grown, error), " (",
                                 before.mean > 0 ? absl::StrCat(sign, GatePercent(100 * grown / before.mean)) : "new",
                                 ") against ", FormatBytes(before.mean, before.error), ", limit ", FormatBytes(limit));
      if (result.outcome != GateOutcome::kPass) {
        absl::StrAppend(&result.text, ": ", FormatBytes(grown - limit), " too much, ", Beyond(grown - limit, error));
        result.sites = SitesOf(live_, scope, now.name, true);
        const double moved = scope == BudgetScope::kModule ? std::min(grown, MovedHere(now.name)) : 0;
        if (moved > 0) {
          absl::StrAppend(&result.text, "; ", FormatBytes(moved), " of it comes from the rules, not from memory");
          if (grown - moved - kGateErrors * error <= limit) result.outcome = GateOutcome::kWarn;
          result.hints.push_back(
              result.outcome == GateOutcome::kWarn
                  ? "other rules own it now: save the baseline again"
                  : absl::StrCat("other rules own part of it now, and beside that memory has grown by ",
                                 FormatBytes(grown - moved, error)));
        }
      }
      results_.push_back(std::move(result));
    };
    judge(live_.total, baseline.total, BudgetScope::kTotal, "total");
    for (const RunSum& module : live_.modules) {
      const RunSum* before = baseline.FindModule(module.name);
      judge(module, before != nullptr ? *before : None(module.name), BudgetScope::kModule,
            absl::StrCat("module ", module.name));
    }
    for (const RunSum& before : baseline.modules) {
      if (live_.FindModule(before.name) == nullptr)
        judge(None(before.name), before, BudgetScope::kModule, absl::StrCat("module ", before.name));
    }
  }

  const Measured& measured_;
  const RunSums& live_;
  const GateSettings& settings_;
  std::vector<GateResult> results_;
};

}  // namespace

const RunSums* Measured::For(Metric metric) const {
  for (const auto& [other, sums] : others) {
    if (other == metric) return &sums;
  }
  return &live;
}

std::vector<GateResult> RunGates(const Measured& measured, const GateSettings& settings) {
  return Gates(measured, settings).Run();
}

const char* GateOutcomeName(GateOutcome outcome) {
  static constexpr const char* kNames[] = {"pass", "warn", "FAIL"};
  return kNames[static_cast<int>(outcome)];
}

GateOutcome WorstOf(const std::vector<GateResult>& results) {
  GateOutcome worst = GateOutcome::kPass;
  for (const GateResult& result : results) worst = std::max(worst, result.outcome);
  return worst;
}

}  // namespace cadastre
