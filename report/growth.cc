#include "report/growth.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/shared_samples.h"
#include "report/stack_walk.h"

namespace cadastre {
namespace {

constexpr double kHourNs = 3600e9;
// Snapshots of different processes of which one was up so many times longer do not compare: caches fill up in between.
constexpr double kUnequalUptimes = 1.5, kUptimeSlackSeconds = 30;
// Of one process: a first snapshot so early has start-up behind it that has not happened yet.
constexpr double kColdShare = 0.1;
// A verdict takes some milliseconds; nobody reads those of 10,000 sites.
constexpr size_t kJudgedSites = 50;

// One grouping: rows by key, their bytes at each snapshot, and the covariances of these.
class Grouping {
 public:
  explicit Grouping(size_t snapshots) : n_(snapshots) {}

  void Reserve(size_t rows) {
    numbers_.reserve(rows);
    rows_.reserve(rows);
    sums_.reserve(rows);
    own_variance_.reserve(rows);
  }

  // A module or a team.
  uint32_t RowOf(const std::string& name, const std::string& team) { return RowOf(name, SiteLine(), "", team, ""); }
  uint32_t RowOf(const GrowthSite& site) {
    // A baseline that was edited may have lost it.
    const std::string name = site.identity.empty() ? site.stack.Text() : "";
    return RowOf(name, site.stack, site.module, site.team, site.identity);
  }

  void Add(uint32_t row, size_t snapshot, const Estimate& estimate, bool has_samples, uint64_t cohort_bytes) {
    rows_[row].bytes[snapshot] += estimate.value;
    // Of the last snapshot: what is still there.
    if (snapshot + 1 == n_) rows_[row].cohort_bytes = rows_[row].cohort_bytes.value_or(0) + cohort_bytes;
    if (has_samples) return;
    if (own_variance_[row].empty()) own_variance_[row].assign(n_, 0);
    own_variance_[row][snapshot] += estimate.variance;
  }

  void AddBlock(uint32_t row, const CovarianceBlock& block) { sums_[row].Add(block); }

  struct Context {
    std::vector<double> hours;  // empty: no verdict
    std::vector<double> requests;
    double weight_bytes = 0;
    bool cohort = false;
  };

  // At most `verdicts` rows are judged, those that grew most.
  std::vector<GrowthRow> Finish(const Context& context, size_t verdicts) {
    std::vector<size_t> order(rows_.size());
    std::iota(order.begin(), order.end(), 0);
    for (size_t i : order) FinishRow(i, context);
    const size_t judged = context.hours.empty() ? 0 : std::min(verdicts, rows_.size());
    ListedBefore before;
    std::partial_sort(order.begin(),
                      order.begin() + static_cast<ptrdiff_t>(verdicts == SIZE_MAX ? rows_.size() : judged), order.end(),
                      [&](size_t a, size_t b) { return before(rows_[a], rows_[b]); });
    for (size_t i = 0; i < judged; i++) JudgeRow(order[i], context);
    std::vector<GrowthRow> sorted;
    sorted.reserve(rows_.size());
    for (size_t i : order) sorted.push_back(std::move(rows_[i]));
    return sorted;
  }

 private:
  uint32_t RowOf(const std::string& name, const SiteLine& stack, const std::string& module, const std::string& team,
                 const std::string& identity) {
    key_.clear();
    for (const std::string* part : {identity.empty() ? &name : &identity, &module, &team}) {
      key_.append(*part);
      key_.push_back('\0');
    }
    auto [place, inserted] = numbers_.try_emplace(key_, rows_.size());
    if (inserted) {
      GrowthRow row;
      row.name = name;
      row.stack = stack;
      row.module = module;
      row.team = team;
      row.identity = identity;
      row.unattributed = (module.empty() ? name : module) == kUnattributedModule;
      row.bytes.assign(n_, 0);
      rows_.push_back(std::move(row));
      sums_.emplace_back();
      own_variance_.emplace_back();
    }
    return place->second;
  }

  double CovarianceAt(size_t row, size_t i, size_t j) const {
    double own = i == j && !own_variance_[row].empty() ? own_variance_[row][i] : 0;
    return sums_[row].At(i, j) + own;
  }

  void FinishRow(size_t i, const Context& context) {
    GrowthRow& row = rows_[i];
    if (!context.cohort) row.cohort_bytes.reset();
    if (context.cohort && !row.cohort_bytes.has_value()) row.cohort_bytes = 0;
    for (size_t s = 0; s < n_; s++) row.errors.push_back(std::sqrt(std::max(0.0, CovarianceAt(i, s, s))));
    const double variance = CovarianceAt(i, 0, 0) + CovarianceAt(i, n_ - 1, n_ - 1) - 2 * CovarianceAt(i, 0, n_ - 1);
    row.delta_error = std::sqrt(std::max(0.0, variance));
  }

  void JudgeRow(size_t i, const Context& context) {
    GrowthRow& row = rows_[i];
    Series series;
    series.hours = context.hours;
    series.bytes = row.bytes;
    series.covariance = sums_[i].Matrix(n_);
    double sum = 0, variances = 0;
    for (size_t s = 0; s < n_; s++) {
      if (!own_variance_[i].empty()) series.covariance[s * n_ + s] += own_variance_[i][s];
      sum += row.bytes[s];
      variances += series.covariance[s * n_ + s];
    }
    // What a sample of this owner stands for; where there is none, what one would.
    series.weight_bytes = variances > 0 && sum > 0 ? variances / sum : context.weight_bytes;
    row.verdict = JudgeSeries(series);
    if (!row.verdict.rate_bytes_per_hour.has_value() || context.requests.empty()) return;
    const double requests = context.requests.back() - context.requests.front();
    const double hours = context.hours.back() - context.hours.front();
    if (requests > 0) row.rate_per_1000_requests = *row.verdict.rate_bytes_per_hour * hours / requests * 1000;
  }

  size_t n_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;  // by identity or name, module and team
  std::string key_;
  std::vector<GrowthRow> rows_;
  std::vector<CovarianceSum> sums_;
  std::vector<std::vector<double>> own_variance_;  // what does not come from samples that are known; empty = none
};

class Comparison {
 public:
  Comparison(const std::vector<GrowthSnapshot>& snapshots, const GrowthOptions& options)
      : snapshots_(snapshots),
        options_(options),
        n_(snapshots.size()),
        modules_(n_),
        teams_(n_),
        sites_(n_),
        total_(n_) {}

  absl::StatusOr<Growth> Compare() {
    if (absl::Status status = Check(); !status.ok()) return status;
    AddSums();
    AddSamples();
    Growth growth;
    growth.one_process = OneProcess();
    for (const GrowthSnapshot& snapshot : snapshots_) {
      growth.moments.push_back({snapshot.label, snapshot.path, snapshot.method, snapshot.time_ns,
                                snapshot.interval_bytes, snapshot.uptime_s, snapshot.baseline});
      for (const std::string& warning : snapshot.warnings)
        growth.warnings.push_back(absl::StrCat(snapshot.label, ": ", warning));
    }
    Grouping::Context context = ContextOf();
    growth.modules = modules_.Finish(context, SIZE_MAX);
    growth.teams = teams_.Finish(context, SIZE_MAX);
    growth.sites = sites_.Finish(context, kJudgedSites);
    std::vector<GrowthRow> total = total_.Finish(context, 1);
    if (!total.empty()) growth.total = total.front();
    Warn(&growth);
    return growth;
  }

 private:
  absl::Status Check() const {
    if (n_ < 2) return absl::InvalidArgumentError("two snapshots at least are needed");
    for (size_t i = 1; i < n_; i++) {
      std::string why = WhyNotComparable(snapshots_[0], snapshots_[i]);
      if (!why.empty()) return absl::InvalidArgumentError(why);
      if (n_ < 3) break;
      if (snapshots_[i].time_ns == 0 || snapshots_[i - 1].time_ns == 0) continue;
      if (snapshots_[i].time_ns <= snapshots_[i - 1].time_ns) {
        return absl::InvalidArgumentError(absl::StrCat(snapshots_[i].label, " is not later than ",
                                                       snapshots_[i - 1].label, ": give the oldest first"));
      }
    }
    if (options_.requests.empty()) return absl::OkStatus();
    if (options_.requests.size() != n_) {
      return absl::InvalidArgumentError(absl::StrCat("--requests has ", options_.requests.size(), " numbers for ", n_,
                                                     " snapshots: one for each is needed"));
    }
    for (size_t i = 1; i < n_; i++) {
      if (options_.requests[i] < options_.requests[i - 1])
        return absl::InvalidArgumentError("--requests goes down: it is a counter, oldest first");
    }
    return absl::OkStatus();
  }

  bool OneProcess() const {
    return std::all_of(snapshots_.begin(), snapshots_.end(), [&](const GrowthSnapshot& snapshot) {
      return !snapshot.process.empty() && snapshot.process == snapshots_[0].process;
    });
  }

  Grouping::Context ContextOf() const {
    Grouping::Context context;
    context.cohort = snapshots_.back().cohort_before_ns > 0 && snapshots_[0].process == snapshots_.back().process &&
                     !snapshots_[0].process.empty();
    for (const GrowthSnapshot& snapshot : snapshots_) {
      if (snapshot.interval_bytes > 1 && snapshot.metric != Metric::kMapped)
        context.weight_bytes = std::max(context.weight_bytes, static_cast<double>(snapshot.interval_bytes));
    }
    if (n_ < 3) return context;
    for (const GrowthSnapshot& snapshot : snapshots_) {
      if (snapshot.time_ns == 0) {
        context.hours.clear();
        break;
      }
      const int64_t since = static_cast<int64_t>(snapshot.time_ns - snapshots_[0].time_ns);
      context.hours.push_back(static_cast<double>(since) / kHourNs);
    }
    context.requests = options_.requests;
    return context;
  }

  void AddSums() {
    const uint32_t all = total_.RowOf("total", "");
    sites_.Reserve(snapshots_[0].sites.size());
    for (size_t i = 0; i < n_; i++) {
      const GrowthSnapshot& snapshot = snapshots_[i];
      const bool has_samples = !snapshot.samples.empty();
      total_.Add(all, i, snapshot.total, has_samples, 0);
      owners_.emplace_back();
      for (const GrowthSite& site : snapshot.sites) {
        const Owners owners = OwnersOf(site);
        if (!snapshot.baseline) {
          modules_.Add(owners.module, i, site.estimate, has_samples, site.cohort_bytes);
          teams_.Add(owners.team, i, site.estimate, has_samples, site.cohort_bytes);
          total_.Add(all, i, {}, has_samples, site.cohort_bytes);
        }
        sites_.Add(owners.site, i, site.estimate, has_samples, site.cohort_bytes);
        auto [place, inserted] = combined_.try_emplace({owners.module, owners.team, owners.site}, by_number_.size());
        if (inserted) by_number_.push_back(owners);
        owners_[i].push_back(place->second);
      }
      if (!snapshot.baseline) continue;
      for (const GrowthSum& sum : snapshot.modules)
        modules_.Add(modules_.RowOf(sum.name, sum.team), i, sum.estimate, false, 0);
      for (const GrowthSum& sum : snapshot.teams) teams_.Add(teams_.RowOf(sum.name, ""), i, sum.estimate, false, 0);
    }
  }

  struct Owners {
    uint32_t module, team, site;
  };

  Owners OwnersOf(const GrowthSite& site) {
    const bool unattributed = site.module == kUnattributedModule;
    return {modules_.RowOf(site.module, site.team),
            teams_.RowOf(unattributed ? std::string(kUnattributedModule) : site.team, ""), sites_.RowOf(site)};
  }

  void AddSamples() {
    SampleLives lives([&](uint32_t number, const CovarianceBlock& block) {
      const Owners& owners = by_number_[number];
      modules_.AddBlock(owners.module, block);
      teams_.AddBlock(owners.team, block);
      sites_.AddBlock(owners.site, block);
      total_.AddBlock(0, block);
    });
    for (size_t i = 0; i < n_; i++) lives.AddSnapshot(static_cast<uint16_t>(i), snapshots_[i], owners_[i]);
    lives.Finish();
  }

  void Warn(Growth* growth) const {
    const GrowthSnapshot &first = snapshots_.front(), &last = snapshots_.back();
    auto add = [&](const std::string& text) { growth->warnings.push_back(text); };
    for (size_t i = 1; i < n_; i++) {
      const GrowthSnapshot &a = snapshots_[i - 1], &b = snapshots_[i];
      if (a.process == b.process && !a.process.empty()) continue;
      const double shorter = std::min(a.uptime_s, b.uptime_s), longer = std::max(a.uptime_s, b.uptime_s);
      if (shorter > 0 && longer > kUnequalUptimes * shorter + kUptimeSlackSeconds) {
        add(absl::StrCat("cold against warm: ", a.label, " was up ", FormatDuration(a.uptime_s), ", ", b.label, " ",
                         FormatDuration(b.uptime_s), "; what fills up in between looks like growth"));
      } else if (n_ > 2 && !a.process.empty() && !b.process.empty()) {
        add(absl::StrCat(a.label, " and ", b.label,
                         " are of different processes: the memory of one was not that of the other"));
      }
      if (!a.program.empty() && !b.program.empty() && a.program != b.program)
        add(absl::StrCat(a.label, " is of ", a.program, ", ", b.label, " of ", b.program));
    }
    if (growth->one_process && IsCold(first, last)) {
      add(absl::StrCat("cold against warm: ", first.label, " was taken at an uptime of ",
                       FormatDuration(first.uptime_s), "; start-up is part of the growth"));
    }
    for (size_t i = 1; i < n_; i++) {
      if (snapshots_[i].rules_hash != snapshots_[0].rules_hash) {
        add(absl::StrCat(snapshots_[i].label, " was owned by other rules than ", snapshots_[0].label,
                         ": a module may have grown because memory changed its owner"));
        break;
      }
    }
    for (size_t i = 1; i < n_; i++) {
      const std::string replaced = ReplacedBinaries(snapshots_[i - 1].builds, snapshots_[i].builds);
      if (replaced.empty()) continue;
      add(absl::StrCat("replaced between ", snapshots_[i - 1].label, " and ", snapshots_[i].label, ": ", replaced));
      break;
    }
    bool exact = false, sampled = false;
    for (const GrowthSnapshot& snapshot : snapshots_) (snapshot.interval_bytes == 1 ? exact : sampled) = true;
    if (exact && sampled && first.metric != Metric::kMapped)
      add("some recorded every allocation and some sampled: the errors are those of sampling");
    if (n_ > 2 && ContextOf().hours.empty()) add("no verdict: the time of a baseline is not known");
  }

  const std::vector<GrowthSnapshot>& snapshots_;
  const GrowthOptions& options_;
  size_t n_;
  Grouping modules_, teams_, sites_, total_;
  std::vector<std::vector<uint32_t>> owners_;  // by snapshot and site: number of the combination
  absl::flat_hash_map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> combined_;
  std::vector<Owners> by_number_;
};

// "live bytes by allocation site, first owned frame": whether it was sampled makes no other method.
std::string Walked(const GrowthSnapshot& snapshot) {
  for (const char* prefix : {"sampled, ", "every allocation, "}) {
    if (snapshot.method.rfind(prefix, 0) == 0) return snapshot.method.substr(std::string(prefix).size());
  }
  return snapshot.method;
}

}  // namespace

bool ListedBefore::operator()(const GrowthRow& a, const GrowthRow& b) {
  if (a.delta_bytes() != b.delta_bytes()) return a.delta_bytes() > b.delta_bytes();
  if (&a == &b) return false;
  return std::tie(NameOf(a), a.module, a.team, a.identity) < std::tie(NameOf(b), b.module, b.team, b.identity);
}

const std::string& ListedBefore::NameOf(const GrowthRow& row) {
  if (row.identity.empty()) return row.name;
  auto [line, inserted] = lines_.try_emplace(&row);
  if (inserted) line->second = row.stack.Text();
  return line->second;
}

bool IsCold(const GrowthSnapshot& first, const GrowthSnapshot& last) {
  return first.uptime_s < kColdShare * last.uptime_s;
}

std::string WhyNotComparable(const GrowthSnapshot& a, const GrowthSnapshot& b) {
  if (Walked(a) == Walked(b)) return "";
  return absl::StrCat(a.label, " has ", Walked(a), ", ", b.label, " has ", Walked(b),
                      ": different methods are not compared");
}

absl::StatusOr<Growth> CompareSnapshots(const std::vector<GrowthSnapshot>& snapshots, const GrowthOptions& options) {
  return Comparison(snapshots, options).Compare();
}

}  // namespace cadastre
