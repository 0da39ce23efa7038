// What a user types for a snapshot to compare → the snapshot: a profile, P@LABEL, P@2h, a PID, or a saved baseline.
//
// Errors: a Status with the path. Thread-safety: main thread only.
//
// Example: absl::StatusOr<GrowthSnapshot> before = LoadGrowth("pay.cad@10:20", options, nullptr);
#ifndef CADASTRE_REPORT_CLI_GROWTH_INPUT_H_
#define CADASTRE_REPORT_CLI_GROWTH_INPUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "report/growth.h"
#include "report/rows.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {

struct GrowthInput {
  std::string rules;  // the flag
  SymbolizerOptions symbols;
  Metric metric = Metric::kLive;
  uint64_t min_samples = kDefaultMinSamples;
  bool refuse_unusable = false;  // an error where a profile cannot be trusted; else a warning
};

// `first` as in TakeGrowth.
absl::StatusOr<GrowthSnapshot> LoadGrowth(const std::string& argument, const GrowthInput& input,
                                          const GrowthSnapshot* first);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_GROWTH_INPUT_H_
