#include "report/snapshot_label.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/profile_path.h"

namespace cadastre {

absl::Status CheckLabel(const std::string& label) {
  constexpr char kAllowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (label.empty() || label.size() > 63 || label.find_first_not_of(kAllowed) != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("label \"", label, "\": use 1 to 63 letters, digits, dots, underscores and hyphens"));
  }
  if (label == "last" || label == "peak" || ParseDurationSeconds(label).has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("label \"", label, "\" already means something: P@last is the newest snapshot, P@peak the one at ",
                     "the peak, P@2h the one at that uptime"));
  }
  if (absl::StartsWith(label, kPeriodicPrefix) || absl::StartsWith(label, kThresholdPrefix)) {
    return absl::InvalidArgumentError(absl::StrCat("label \"", label, "\": labels that begin with ", kPeriodicPrefix,
                                                   " or ", kThresholdPrefix, " are those of snapshots that `watch` ",
                                                   "and `run` take, and replace later"));
  }
  return absl::OkStatus();
}

}  // namespace cadastre
