// Growth between snapshots, by owner: how much, how surely, and from three snapshots on a verdict.
//
// Pure functions over what growth_snapshot takes from profiles and baseline from files. Units: bytes, seconds of
// uptime, nanoseconds of real time. Errors: a Status where snapshots cannot be compared (CompareSnapshots).
// Thread-safety: pure.
//
// Derivation of the error of a difference. A block is sampled with probability p, once, when it is allocated; as long
// as it lives the same sample stands for it with the weight w = S/p. So the estimates of two snapshots of one process
// share the samples alive in both, and what these say wrongly they say twice:
//   cov(A, B) = sum over blocks alive in both of S^2 (1-p)/p, of which sum over samples alive in both of w(w-S) is an
//   unbiased estimate (estimate.h), and
//   var(B - A) = var(A) + var(B) - 2 cov(A, B) = sum of w(w-S) over the samples that are alive in one of them alone.
// The cohort that is alive in both cancels: a module that holds 2 GiB and grows by 10 MiB has the error of 10 MiB.
// Where memory ran short in between, live samples were thinned: kept with p'/p, weighing w' = S/p'. Then, by
// E[I I'] = p', cov = S^2 (1-p)/p, of which w'(w-S) over the samples still alive is an unbiased estimate. Between
// processes nothing is shared. All of it holds for sums over disjoint sets of blocks, so for every owner by itself.
//
// Example:
//   absl::StatusOr<Growth> growth = CompareSnapshots({before, after}, {});
//   for (const GrowthRow& row : growth->modules) Use(row.name, row.delta_bytes(), row.delta_error);
#ifndef CADASTRE_REPORT_GROWTH_H_
#define CADASTRE_REPORT_GROWTH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/statusor.h"
#include "report/binary_builds.h"
#include "report/estimate.h"
#include "report/site_lines.h"
#include "report/verdict.h"

namespace cadastre {

// A live sample, as far as it says which block it is and what it adds.
struct GrowthSample {
  uint64_t address = 0, time_ns = 0;  // of allocation, since the process start
  uint64_t size_bytes = 0, weight_bytes = 0;
  uint32_t site = 0;  // index into GrowthSnapshot::sites
};

// Sites that read the same (site_identity) and have one owner.
struct GrowthSite {
  std::string module, team;  // module "unattributed": nobody owns it
  std::string identity;      // 16 hex digits
  SiteLine stack;            // for people
  Estimate estimate;
  uint64_t samples = 0;       // alive
  bool guessed = false;       // the owner
  uint64_t cohort_bytes = 0;  // of it, allocated before GrowthSnapshot::cohort_before_ns
};

// A sum over an owner as a baseline has it.
struct GrowthSum {
  std::string name, team;
  Estimate estimate;
};

struct GrowthSnapshot {
  std::string label;  // "10:20", "pay.cad": what was typed, shortened
  std::string path;
  uint64_t time_ns = 0;  // real time of the snapshot; 0 = not known
  double uptime_s = 0;
  std::string process;  // the same text = the same process; empty = not one process
  std::string program;  // file name of the executable
  Metric metric = Metric::kLive;
  std::string method;           // "sampled, live bytes by allocation site, first owned frame"
  uint64_t interval_bytes = 0;  // 1 = every allocation was recorded
  std::string rules_hash;
  BinaryBuilds builds;
  bool guesses = false;           // owners are guesses
  bool baseline = false;          // from a file: `modules` and `teams` hold the sums, `sites` the larger ones only
  uint64_t cohort_before_ns = 0;  // uptime of the first snapshot, if that is of the same process; 0 = none
  Estimate total;
  std::vector<GrowthSite> sites;
  std::vector<GrowthSample> samples;      // empty where errors are not from sampling
  std::vector<GrowthSum> modules, teams;  // of a baseline
  std::vector<std::string> warnings;
};

struct GrowthRow {
  std::string name;                      // module or team; empty of a site
  SiteLine stack;                        // of a site
  std::string module, team, identity;    // of modules: team; of sites: all
  std::vector<double> bytes, errors;     // one for each snapshot
  double delta_error = 0;                // of the last minus the first
  std::optional<uint64_t> cohort_bytes;  // allocated before the first snapshot and alive at the last
  Verdict verdict;                       // kNone with two snapshots
  std::optional<double> rate_per_1000_requests;
  bool unattributed = false;

  double delta_bytes() const { return bytes.back() - bytes.front(); }
  bool is_new() const { return bytes.front() == 0 && bytes.back() > 0; }
  bool is_gone() const { return bytes.front() > 0 && bytes.back() == 0; }
};

struct Growth {
  struct Moment {
    std::string label, path, method;
    uint64_t time_ns = 0, interval_bytes = 0;
    double uptime_s = 0;
    bool baseline = false;
  };
  std::vector<Moment> moments;
  bool one_process = false;  // all are of the same
  GrowthRow total;
  // In the order of ListedBefore; the unattributed one is among them. Of sites those alone that have a verdict: the
  // others follow in no order, because few are ever printed.
  std::vector<GrowthRow> modules, teams, sites;
  std::vector<std::string> warnings;
};

// Those that grew most first, then by name. Lines of sites are made where two grew alike, once each: rows must not
// move meanwhile.
class ListedBefore {
 public:
  bool operator()(const GrowthRow& a, const GrowthRow& b);

 private:
  const std::string& NameOf(const GrowthRow& row);
  absl::node_hash_map<const GrowthRow*, std::string> lines_;
};

struct GrowthOptions {
  std::vector<double> requests;  // a counter of the program's at each snapshot; empty = none
};

// At least two snapshots, oldest first. InvalidArgument: methods that do not compare, no order of time (from three on),
// requests that do not fit.
absl::StatusOr<Growth> CompareSnapshots(const std::vector<GrowthSnapshot>& snapshots, const GrowthOptions& options);

// Of one process: `first` was taken so early that its start-up is part of what `last` has grown by.
bool IsCold(const GrowthSnapshot& first, const GrowthSnapshot& last);

// Whether what both say may be subtracted: "" or why not.
std::string WhyNotComparable(const GrowthSnapshot& a, const GrowthSnapshot& b);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_GROWTH_H_
