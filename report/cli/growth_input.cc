#include "report/cli/growth_input.h"

#include "absl/strings/str_cat.h"
#include "report/baseline.h"
#include "report/cli/command.h"
#include "report/function_name.h"
#include "report/growth_snapshot.h"

namespace cadastre {

absl::StatusOr<GrowthSnapshot> LoadGrowth(const std::string& argument, const GrowthInput& input,
                                          const GrowthSnapshot* first) {
  const std::string label(FileName(argument));
  if (IsBaseline(argument)) {
    absl::StatusOr<RunSums> sums = ReadBaseline(argument);
    if (!sums.ok()) return sums.status();
    GrowthSnapshot snapshot = SnapshotOf(*sums, label);
    snapshot.path = argument;
    return snapshot;
  }
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(argument, input.rules, input.symbols);
  if (!loaded.ok()) return loaded.status();
  LoadedProfile& profile = **loaded;
  ReportOptions options;
  options.metric = profile.where.at_peak ? Metric::kPeak : input.metric;
  options.min_samples = input.min_samples;
  Report report =
      BuildReport(profile.profile, profile.rules, profile.attribution.get(), profile.symbolizer.get(), options);
  if (input.refuse_unusable && !report.trust.usable)
    return absl::FailedPreconditionError(absl::StrCat(argument, ": ", report.trust.reason));
  GrowthSnapshot snapshot = TakeGrowth(report, profile.rules, label, first);
  if (!profile.where.note.empty()) snapshot.warnings.push_back(profile.where.note);
  return snapshot;
}

}  // namespace cadastre
