// The verdict on a series of six points or more by the shape that fits best, together with the odds over all shapes.
//
// Errors: none. Thread-safety: pure.
//
// Example: Verdict verdict = JudgeShapes(series);
#ifndef CADASTRE_REPORT_SHAPE_VERDICT_H_
#define CADASTRE_REPORT_SHAPE_VERDICT_H_

#include "report/verdict.h"

namespace cadastre {

Verdict JudgeShapes(const Series& series);

// Whether the odds over all shapes bear out that a series has a trend.
bool OddsAllowTrend(const Series& series);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SHAPE_VERDICT_H_
