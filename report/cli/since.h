// What `cadastre report` knows of the past: the snapshots that lie beside a profile.
//
// Those of the same process that were taken before what is reported, the one at the peak aside (it was chosen for its
// height, so it would tilt any trend); at most kMostSnapshots of them, spread evenly. Growth is counted from the oldest
// that is not cold. Errors: NotFound where --since names what is not there; a snapshot that cannot be used is a warning
// of the report. Thread-safety: reads files.
//
// Example: if (absl::Status status = AddSince(input, {.label = "10:20"}, &report); !status.ok()) return Fail(status);
#ifndef CADASTRE_REPORT_CLI_SINCE_H_
#define CADASTRE_REPORT_CLI_SINCE_H_

#include <string>

#include "absl/status/status.h"
#include "report/cli/command.h"
#include "report/cli/growth_input.h"

namespace cadastre {

inline constexpr size_t kMostSnapshots = 12;

// `since`: a label; "none" = no past; empty = the oldest that is not cold.
absl::Status AddSince(const LoadedProfile& loaded, const std::string& since, const GrowthInput& input, Report* report);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_SINCE_H_
