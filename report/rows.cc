#include "report/rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "report/function_name.h"
#include "report/rows_builder.h"
#include "report/rows_order.h"
#include "report/runtime_facts.h"

namespace cadastre {
namespace {

constexpr double kDefaultOlderThanSeconds = 600;

std::string MethodOf(const Profile& profile, Metric metric, GroupBy by) {
  static constexpr const char* kQuantities[] = {"live bytes", "allocated bytes", "live blocks",
                                                "live bytes at the peak", "old live bytes"};
  const char* walked = by == GroupBy::kHolder ? "holder, first shared structure or owned frame" : nullptr;
  if (metric == Metric::kMapped) {
    return absl::StrCat("every mapping, committed bytes by ",
                        walked != nullptr ? walked : "mapping site, first owned frame");
  }
  return absl::StrCat(profile.exact() ? "every allocation, " : "sampled, ", kQuantities[static_cast<int>(metric)],
                      " by ", walked != nullptr ? walked : "allocation site, first owned frame");
}

// Where a profile is read far from its binaries every library has this warning: one line for all of them.
void AddSymbolWarnings(const std::vector<std::string>& warnings, std::vector<std::string>* out) {
  constexpr char kUnreadable[] = " cannot be read: its functions have no names";
  std::vector<std::string> names;
  for (const std::string& warning : warnings) {
    absl::string_view rest = warning;
    if (absl::ConsumeSuffix(&rest, kUnreadable)) {
      names.push_back(std::string(FileName(rest)));
    } else {
      out->push_back(warning);
    }
  }
  if (names.size() == 1) out->push_back(names[0] + kUnreadable);
  if (names.size() > 1) {
    out->push_back(absl::StrCat(
        names.size(), " libraries cannot be read, their functions have no names: ", absl::StrJoin(names, ", ")));
  }
}

}  // namespace

const char* MetricName(Metric metric) {
  static constexpr const char* kNames[] = {"live", "allocated", "count", "peak", "old", "mapped"};
  return kNames[static_cast<int>(metric)];
}

const char* GroupName(GroupBy by) {
  static constexpr const char* kNames[] = {"module", "team", "library", "site", "thread", "holder"};
  return kNames[static_cast<int>(by)];
}

const std::vector<Row>& Report::RowsBy(GroupBy by) const {
  switch (by) {
    case GroupBy::kTeam:
      return teams;
    case GroupBy::kLibrary:
      return libraries;
    case GroupBy::kThread:
      return threads;
    case GroupBy::kHolder:
      return holders;
    default:
      return modules;
  }
}

std::vector<const Frame*> Report::FramesOf(const SiteRow& row) const { return attribution->FramesOf(row.site); }

double Report::SharePercent(const Tally& tally) const {
  double total = EstimateOf(totals, options.metric).value;
  return total > 0 ? 100 * EstimateOf(tally, options.metric).value / total : 0;
}

double Report::ShareErrorPercentOf(const Tally& tally) const {
  return ShareErrorPercent(EstimateOf(tally, options.metric), EstimateOf(totals, options.metric));
}

Report BuildReport(const Profile& profile, const OwnerRules& rules, Attribution* attribution, Symbolizer* symbolizer,
                   const ReportOptions& options) {
  Report report;
  report.profile = &profile;
  report.attribution = attribution;
  report.options = options;
  report.trust = JudgeProfile(profile, options.min_samples);
  report.runtime = RuntimeOf(profile);
  bool unknown =
      options.by == GroupBy::kThread && (options.metric == Metric::kAllocated || options.metric == Metric::kPeak);
  if (unknown) report.options.metric = Metric::kLive;
  const Metric metric = report.options.metric;
  report.method = MethodOf(profile, metric, options.by);
  report.rules_path = rules.path;
  double uptime_s = static_cast<double>(profile.duration_ns) / 1e9;
  if (options.older_than_s.has_value()) {
    report.older_than_s = *options.older_than_s;
  } else if (uptime_s > kDefaultOlderThanSeconds) {
    report.older_than_s = kDefaultOlderThanSeconds;
  }
  SumRows(profile, attribution, &report);
  DropOtherKind(metric, &report);
  SortRows(options.older_than_s.has_value() && metric == Metric::kLive ? Metric::kOld : metric, &report);
  report.guesses = attribution->guesses() && std::any_of(report.modules.begin(), report.modules.end(),
                                                         [](const Row& row) { return row.guessed; });
  // Owners need names only as far as the walk goes; the count of what has none must not depend on that.
  for (uint64_t raw : attribution->DistinctFrames()) symbolizer->Resolve(raw);
  report.unresolved_frames = std::max(symbolizer->unresolved_frames(), profile.losses.unresolved_frames);
  report.warnings = report.trust.warnings;
  if (report.divided_sites > 0 && (options.metric == Metric::kAllocated || options.metric == Metric::kPeak)) {
    report.warnings.push_back(absl::StrCat(
        FormatCount(static_cast<double>(report.divided_sites)), report.divided_sites == 1 ? " stack is" : " stacks are",
        " shared by threads of several owners: what was allocated, or held at the peak, is divided as live memory is"));
  }
  if (unknown) {
    report.warnings.push_back(absl::StrCat("what each thread ",
                                           options.metric == Metric::kPeak ? "had at the peak" : "allocated",
                                           " is not kept: live memory is shown"));
  }
  // A cut stack that shows its owner lost nothing that matters here.
  uint64_t cut = 0;
  for (const SiteRow& row : report.sites) cut += row.truncated && row.unattributed ? row.tally.samples : 0;
  if (static_cast<double>(cut) > kMaxLossShare * static_cast<double>(profile.recorded_samples)) {
    double percent = 100 * static_cast<double>(cut) / static_cast<double>(profile.recorded_samples);
    report.warnings.push_back(
        absl::StrCat(FormatShare(percent, 0), " of the samples have a cut stack without an owner in it"));
  }
  if (report.guesses) {
    report.warnings.push_back("owners are guessed from package and library names: no rules file was given");
  }
  AddSymbolWarnings(symbolizer->warnings(), &report.warnings);
  return report;
}

}  // namespace cadastre
