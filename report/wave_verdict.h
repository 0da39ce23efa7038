// The verdict on a series that rises and falls: waves, and whether their averages go on.
//
// Errors: none. Thread-safety: pure.
//
// Example: const Waves waves = FindWaves(series); if (waves.are_waves()) return JudgeWaves(series, waves);
#ifndef CADASTRE_REPORT_WAVE_VERDICT_H_
#define CADASTRE_REPORT_WAVE_VERDICT_H_

#include "report/series_waves.h"
#include "report/verdict.h"

namespace cadastre {

Verdict JudgeWaves(const Series& series, const Waves& waves);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_WAVE_VERDICT_H_
