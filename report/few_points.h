// The verdict on a series of three to five points: by two increments, about its middle. (More: shape_verdict.h.)
//
// Errors: none. Thread-safety: pure.
//
// Example: return series.size() < kMinFitPoints ? JudgeFewPoints(series) : JudgeShapes(series);
#ifndef CADASTRE_REPORT_FEW_POINTS_H_
#define CADASTRE_REPORT_FEW_POINTS_H_

#include "report/verdict.h"

namespace cadastre {

Verdict JudgeFewPoints(const Series& series);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FEW_POINTS_H_
