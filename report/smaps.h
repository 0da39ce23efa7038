// /proc/PID/smaps as text → areas.
//
// Unknown lines are passed over: kernels add and drop fields. Units: bytes. Errors: the line and its number, where it
// is not what the kernel writes. Thread-safety: pure function.
//
// Example:
//   absl::StatusOr<std::vector<MemoryArea>> areas = ParseSmaps(ReadWholeFile("/proc/42/smaps"), "/proc/42/smaps");
#ifndef CADASTRE_REPORT_SMAPS_H_
#define CADASTRE_REPORT_SMAPS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "symbolizer/process_memory.h"

namespace cadastre {

// In order of address. `name` stands in messages.
absl::StatusOr<std::vector<MemoryArea>> ParseSmaps(absl::string_view text, const std::string& name);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SMAPS_H_
