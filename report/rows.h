// The report as plain rows: everything that any output format prints, computed once.
//
// BuildReport reads → names → attributes → sums; format_*.cc print. Every format prints the same rows.
// Invariant: over `modules`, live, allocated and peak bytes add up exactly to `totals` (the unattributed row is one of
// them, kept apart in `unattributed`); likewise teams, libraries, holders, threads (live bytes) and sites. So do live
// counts, which are whole numbers here. `options.metric` is the one that is shown: by thread only what is live is
// known. Units: bytes, blocks, seconds. Thread-safety: plain values.
//
// Example:
//   ReportOptions options;
//   Report report = BuildReport(profile, rules, &symbolizer, options);
//   std::cout << FormatText(report, TextStyle{});
#ifndef CADASTRE_REPORT_ROWS_H_
#define CADASTRE_REPORT_ROWS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/attribution.h"
#include "report/estimate.h"
#include "report/ledger.h"
#include "report/trust.h"
#include "report/verdict.h"
#include "symbolizer/profile.h"

namespace cadastre {

enum class GroupBy { kModule, kTeam, kLibrary, kSite, kThread, kHolder };

struct ReportOptions {
  GroupBy by = GroupBy::kModule;
  Metric metric = Metric::kLive;
  std::optional<double> older_than_s;  // not set: 10 minutes, shown once the process is older than that
  uint64_t min_samples = kDefaultMinSamples;
  std::string profile_argument;  // as typed; for the "next:" lines
};

// By how much an owner has grown since an earlier snapshot of the process, and what all of them say (row_growth).
struct RowGrowth {
  double delta_bytes = 0, delta_error = 0;
  Verdict verdict;  // kNone with fewer than three
};

// A row of any grouping.
struct Row {
  std::string name;  // module, team, library, thread or holder
  std::string team;  // modules only
  bool guessed = false;
  bool unattributed = false;
  std::string via;  // the wrapper that most of it went through; empty = none
  Tally tally;
  uint64_t pooled_bytes = 0;  // live; pieces of pools that it was the first to ask for
  std::optional<RowGrowth> growth;
};

// The snapshot that growth is counted from.
struct ReportSince {
  std::string label, path;
  uint64_t time_ns = 0;  // real time
  size_t snapshots = 0;  // with the report itself
};

// A structure in which many modules may keep memory, and who put it there. Its memory is in the rows of its creators.
struct SharedRow {
  std::string holder, team;
  bool pool = false;
  Tally tally;
  std::vector<Row> creators;  // heaviest first
};

struct SiteRow {
  uint32_t site = 0;
  std::string module, team, rule, via, thread, created_by;
  std::string holder;  // the shared structure that it lies in, else its module
  bool pooled = false;
  bool guessed = false, unattributed = false, truncated = false;
  SiteKind kind = SiteKind::kMalloc;
  int owner_frame = -1, telling_frame = -1;  // Charge's
  Tally tally;
};

struct RuleSuggestion {
  std::string prefix;
  uint64_t live_bytes = 0, allocated_bytes = 0;
};

struct Report {
  // The profile's own words, and who resolves frames; rows refer to them.
  const Profile* profile = nullptr;
  Attribution* attribution = nullptr;
  ReportOptions options;
  Trust trust;
  uint64_t divided_sites = 0;  // of several owners: their volume and peak are divided as their live bytes are
  std::string runtime;         // "java 21", "python 3.11"; empty = native or not known
  std::string method;          // "sampled, live bytes by allocation site, first owned frame"
  std::string rules_path;      // empty: no rules file, owners are guesses
  bool guesses = false;
  double older_than_s = 0;  // threshold of old_bytes; 0 = none, the process is too young
  Tally totals;
  Row unattributed;
  std::vector<Row> modules;  // without the unattributed row; heaviest first
  std::vector<Row> teams, libraries, threads, holders;
  std::vector<SharedRow> shared;  // heaviest first
  std::vector<SiteRow> sites;     // heaviest first
  std::vector<RuleSuggestion> suggestions;
  uint64_t unresolved_frames = 0;
  std::vector<std::string> warnings;
  std::optional<Ledger> rss;         // not set: what was resident is not known
  std::optional<ReportSince> since;  // not set: no earlier snapshot

  // The rows that `--by` names. Sites have rows of their own.
  const std::vector<Row>& RowsBy(GroupBy by) const;
  std::vector<const Frame*> FramesOf(const SiteRow& row) const;  // leaf first; looked up when it is asked for
  double SharePercent(const Tally& tally) const;                 // of the chosen metric
  double ShareErrorPercentOf(const Tally& tally) const;
};

// `attribution` must outlive the report (rows point at its frames).
Report BuildReport(const Profile& profile, const OwnerRules& rules, Attribution* attribution, Symbolizer* symbolizer,
                   const ReportOptions& options);

const char* MetricName(Metric metric);  // "live", "allocated", "count", "peak"
const char* GroupName(GroupBy by);      // "module", "team", ...

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ROWS_H_
