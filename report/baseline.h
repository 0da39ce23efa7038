// A measurement saved beside the code, to be compared with later: text in a stable order, rounded as its errors allow,
// so that a version control system shows what changed and not the noise.
//
//   # cadastre baseline 1: made by `cadastre check --save`, compared with by `cadastre check --baseline`
//   row,name,team,bytes,stderr,spread,site
//   program,pay,,,,,
//   method,"sampled, live bytes by allocation site, first owned frame",,,,,
//   runs,,,3,,,
//   interval,,,524288,,,
//   rules,,,,,,0123456789abcdef
//   binary,libz.so.1,,,,,9f1c…                      (its build id)
//   time,2026-01-01T00:00:00Z,,,,,
//   total,,,263000000,10000000,4000000,
//   module,billing,payments,210000000,9000000,3000000,
//   team,payments,,210000000,9000000,3000000,
//   site,"f < g",payments,…                          (module in a row before: `site` rows follow their module)
//   end,,,,,,                                       (what has none was cut)
// Bytes are whole; `spread` is the standard deviation between runs. Sites are those beyond three standard errors, at
// most kMaxBaselineSites. Errors: "FILE:LINE:COLUMN: what". Thread-safety: pure; ReadBaseline reads a file.
//
// Example: absl::StatusOr<RunSums> before = ReadBaseline("perf/memory-baseline.csv");
#ifndef CADASTRE_REPORT_BASELINE_H_
#define CADASTRE_REPORT_BASELINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "report/run_sums.h"

namespace cadastre {

inline constexpr size_t kMaxBaselineSites = 200;

std::string FormatBaseline(const RunSums& sums);
absl::StatusOr<RunSums> ReadBaseline(const std::string& path);

// By its first line. False too where it cannot be read.
bool IsBaseline(const std::string& path);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_BASELINE_H_
