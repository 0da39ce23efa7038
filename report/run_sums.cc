#include "report/run_sums.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "report/stack_walk.h"

namespace cadastre {
namespace {

// One owner's estimates, run by run.
struct Runs {
  RunSum sum;
  std::vector<Estimate> estimates;
  explicit Runs(size_t runs = 0) : estimates(runs) {}
};

using Key = std::tuple<std::string, std::string, std::string>;

void Finish(const std::vector<Estimate>& totals, Runs* runs) {
  const auto n = static_cast<double>(runs->estimates.size());
  RunSum& sum = runs->sum;
  const RunSum measured = MeanOfRuns(runs->estimates);
  sum.mean = measured.mean;
  sum.error = measured.error;
  sum.spread = measured.spread;
  double total = 0, share_variance = 0;
  for (size_t i = 0; i < runs->estimates.size(); i++) {
    total += totals[i].value / n;
    const double share_error = ShareErrorPercent(runs->estimates[i], totals[i]);
    share_variance += share_error * share_error / n / n;
  }
  if (!(total > 0)) return;
  sum.share_pct = 100 * sum.mean / total;
  double share_squares = 0;
  for (size_t i = 0; i < runs->estimates.size(); i++) {
    const double share = totals[i].value > 0 ? 100 * runs->estimates[i].value / totals[i].value : 0;
    share_squares += (share - sum.share_pct) * (share - sum.share_pct);
  }
  if (n > 1) share_variance = std::max(share_variance, share_squares / (n - 1) / n);
  sum.share_error_pct = std::sqrt(share_variance);
}

std::vector<RunSum> Finished(const std::vector<Estimate>& totals, std::map<Key, Runs>* rows) {
  std::vector<RunSum> sums;
  for (auto& [key, runs] : *rows) {
    Finish(totals, &runs);
    sums.push_back(std::move(runs.sum));
  }
  return sums;
}

const RunSum* Find(const std::vector<RunSum>& sums, const std::string& name) {
  for (const RunSum& sum : sums) {
    if (sum.name == name) return &sum;
  }
  return nullptr;
}

}  // namespace

const RunSum* RunSums::FindModule(const std::string& name) const { return Find(modules, name); }
const RunSum* RunSums::FindTeam(const std::string& name) const { return Find(teams, name); }

RunSum MeanOfRuns(const std::vector<Estimate>& runs) {
  const auto n = static_cast<double>(runs.size());
  RunSum sum;
  double sampling = 0, squares = 0;
  for (const Estimate& estimate : runs) {
    sum.mean += estimate.value / n;
    sampling += estimate.variance / n / n;
  }
  for (const Estimate& estimate : runs) squares += (estimate.value - sum.mean) * (estimate.value - sum.mean);
  if (n > 1) sum.spread = std::sqrt(squares / (n - 1));
  sum.error = std::sqrt(std::max(sampling, sum.spread * sum.spread / n));
  return sum;
}

absl::StatusOr<RunSums> RunSumsOf(const std::vector<GrowthSnapshot>& runs) {
  RunSums sums;
  sums.runs = runs.size();
  std::map<Key, Runs> modules, teams, sites;
  std::vector<Estimate> totals;
  for (const GrowthSnapshot& run : runs) totals.push_back(run.total);
  for (size_t i = 0; i < runs.size(); i++) {
    const GrowthSnapshot& run = runs[i];
    if (std::string why = WhyNotComparable(runs[0], run); !why.empty()) return absl::InvalidArgumentError(why);
    if (run.program != runs[0].program) {
      return absl::InvalidArgumentError(absl::StrCat(runs[0].label, " is of ", runs[0].program, ", ", run.label, " of ",
                                                     run.program, ": several profiles are runs of one load"));
    }
    sums.interval_bytes = std::max(sums.interval_bytes, run.interval_bytes);
    sums.uptime_s = std::max(sums.uptime_s, run.uptime_s);
    sums.time_ns = std::max(sums.time_ns, run.time_ns);
    sums.guesses |= run.guesses;
    for (const auto& [name, builds] : run.builds) sums.builds[name].insert(builds.begin(), builds.end());
    auto add = [&](std::map<Key, Runs>* rows, const Key& key, const GrowthSite& site) -> RunSum& {
      auto [place, inserted] = rows->try_emplace(key, Runs(runs.size()));
      place->second.estimates[i].value += site.estimate.value;
      place->second.estimates[i].variance += site.estimate.variance;
      return place->second.sum;
    };
    for (const GrowthSite& site : run.sites) {
      RunSum& module = add(&modules, {site.module, "", ""}, site);
      module.name = site.module;
      module.team = site.team;
      const std::string team_name = site.module == kUnattributedModule ? kUnattributedModule : site.team;
      add(&teams, {team_name, "", ""}, site).name = team_name;
      RunSum& row = add(&sites, {site.module, site.team, site.identity}, site);
      row.name = site.stack.Text();
      row.module = site.module;
      row.team = site.team;
      row.identity = site.identity;
    }
  }
  sums.program = runs[0].program;
  sums.method = runs[0].method;
  sums.rules_hash = runs[0].rules_hash;
  sums.modules = Finished(totals, &modules);
  sums.teams = Finished(totals, &teams);
  sums.sites = Finished(totals, &sites);
  Runs total(runs.size());
  total.sum.name = "total";
  total.estimates = totals;
  Finish(totals, &total);
  sums.total = total.sum;
  return sums;
}

GrowthSnapshot SnapshotOf(const RunSums& sums, const std::string& label) {
  GrowthSnapshot snapshot;
  snapshot.label = label;
  snapshot.baseline = true;
  snapshot.program = sums.program;
  snapshot.method = sums.method;
  snapshot.rules_hash = sums.rules_hash;
  snapshot.builds = sums.builds;
  snapshot.interval_bytes = sums.interval_bytes;
  snapshot.uptime_s = sums.uptime_s;
  snapshot.time_ns = sums.time_ns;
  snapshot.total = {sums.total.mean, sums.total.error * sums.total.error};
  for (const RunSum& sum : sums.modules)
    snapshot.modules.push_back({sum.name, sum.team, {sum.mean, sum.error * sum.error}});
  for (const RunSum& sum : sums.teams) snapshot.teams.push_back({sum.name, "", {sum.mean, sum.error * sum.error}});
  for (const RunSum& sum : sums.sites) {
    GrowthSite site;
    site.module = sum.module;
    site.team = sum.team;
    site.identity = sum.identity;
    site.stack = SiteLine(sum.name);
    site.estimate = {sum.mean, sum.error * sum.error};
    snapshot.sites.push_back(std::move(site));
  }
  return snapshot;
}

}  // namespace cadastre
