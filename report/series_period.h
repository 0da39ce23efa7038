// A regular wave of which a series has only a few points each time round: two to eight.
//
// There, second differences cannot tell the wave from noise. A line with a wave of one or two harmonics is fitted
// instead, for each period of that length that the series has three of, and must explain what noise would with a
// probability below 1 in 1,000 over all periods (squares of a least-squares fit: the share that 2h parameters leave of
// noise is Beta distributed). Units: bytes. Errors: none. Thread-safety: pure.
//
// Example: if (double half = CoarseWaveBytes(series); half > 0) TurnsCountFrom(half);
#ifndef CADASTRE_REPORT_SERIES_PERIOD_H_
#define CADASTRE_REPORT_SERIES_PERIOD_H_

#include "report/verdict.h"

namespace cadastre {

// Half of the wave's height; 0 = there is none.
double CoarseWaveBytes(const Series& series);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SERIES_PERIOD_H_
