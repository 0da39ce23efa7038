// A regular wave: one of which a series has only two points or some more each time round, so that second differences
// cannot tell it from noise, or one whose turns are less than the errors of single points.
//
// A line with a wave of one or two harmonics is fitted, for each period that the series has three of, and must explain
// what noise would with a probability below 1 in 1,000 over all periods. Errors that belong together are whitened, with
// the restlessness that a line alone leaves; of a least-squares fit the share that 2h parameters leave of noise is Beta
// distributed. Units: bytes. Errors: none. Thread-safety: pure.
//
// Example: if (double half = RegularWaveBytes(series); half > 0) TurnsCountFrom(half);
#ifndef CADASTRE_REPORT_SERIES_PERIOD_H_
#define CADASTRE_REPORT_SERIES_PERIOD_H_

#include "report/verdict.h"

namespace cadastre {

// Half of the wave's height; 0 = there is none.
double RegularWaveBytes(const Series& series);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SERIES_PERIOD_H_
