// Labels of snapshots: PROFILE@LABEL.
//
// Thread-safety: functions of their arguments.
#ifndef CADASTRE_REPORT_SNAPSHOT_LABEL_H_
#define CADASTRE_REPORT_SNAPSHOT_LABEL_H_

#include <string>

#include "absl/status/status.h"

namespace cadastre {

// How the labels of the snapshots that `watch` and `run` take, and replace or remove later, begin.
inline constexpr char kPeriodicPrefix[] = "every-", kThresholdPrefix[] = "at-";

// Whether a person may use this label: [A-Za-z0-9._-]{1,63}, but not "last" (it means the newest), nothing that reads
// as an uptime ("2h"), and nothing that `watch` and `run` use.
absl::Status CheckLabel(const std::string& label);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SNAPSHOT_LABEL_H_
