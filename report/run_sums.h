// Several runs of one load as one measurement: the mean of each owner, its error, and how much the runs differ.
//
// The error of a mean is the larger of what sampling leaves and what the spread between the runs leaves: runs differ
// for reasons of their own, and the spread of two or three runs may be small by chance. Units: bytes. Errors: a Status
// where runs are not of one load (RunSumsOf). Thread-safety: plain values.
//
// Example: absl::StatusOr<RunSums> measured = RunSumsOf({first, second, third});
#ifndef CADASTRE_REPORT_RUN_SUMS_H_
#define CADASTRE_REPORT_RUN_SUMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/growth.h"

namespace cadastre {

struct RunSum {
  std::string name, team;                     // module and team, or team alone, or a site's stack with both
  std::string module, identity;               // of sites
  double mean = 0, error = 0;                 // standard error of the mean
  double spread = 0;                          // standard deviation between runs; 0 with one run
  double share_pct = 0, share_error_pct = 0;  // of the total
};

struct RunSums {
  uint64_t runs = 0;
  std::string program, method, rules_hash;
  BinaryBuilds builds;          // of all runs
  uint64_t interval_bytes = 0;  // the largest; 1 = every allocation was recorded
  double uptime_s = 0;          // the longest
  uint64_t time_ns = 0;         // the latest
  bool guesses = false;
  RunSum total;
  // In order of name; a module is one row, whatever teams it has; "unattributed" is a module and a team.
  std::vector<RunSum> modules, teams, sites;

  const RunSum* FindModule(const std::string& name) const;  // nullptr = none
  const RunSum* FindTeam(const std::string& name) const;
};

// One estimate for each run: mean, error and spread. What it is a share of is another matter.
RunSum MeanOfRuns(const std::vector<Estimate>& runs);

absl::StatusOr<RunSums> RunSumsOf(const std::vector<GrowthSnapshot>& runs);

// As one more snapshot for CompareSnapshots.
GrowthSnapshot SnapshotOf(const RunSums& sums, const std::string& label);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_RUN_SUMS_H_
