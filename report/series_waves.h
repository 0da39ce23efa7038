// Rises and falls of a series: memory that is filled and emptied again, by a batch job, a cache that is cleared, day
// and night.
//
// A turn counts if the series went back by more than its errors and its restlessness explain: the last high (or low)
// and the point of now differ by more than 4 standard errors, 6 times the scatter of second differences (small where
// waves are sampled well, as large as the noise itself where there are none) and 2 % of the level. Of a regular wave
// (series_period) half its height is enough, beyond 2 standard errors. Units: as in
// Series. Errors: none. Thread-safety: pure.
//
// Example: Waves waves = FindWaves(series); if (waves.are_waves()) JudgeMeans(CycleMeans(series, waves));
#ifndef CADASTRE_REPORT_SERIES_WAVES_H_
#define CADASTRE_REPORT_SERIES_WAVES_H_

#include <cstddef>
#include <vector>

#include "report/verdict.h"

namespace cadastre {

struct Waves {
  std::vector<size_t> highs, lows;  // points where the series turned, without its ends
  double swing_bytes = 0;           // mean height of a fall

  // A rise and a fall alone are one event.
  bool are_waves() const { return highs.size() + lows.size() >= 3; }
};

// Standard deviation of one point, from second differences: a line, a curve and a well-sampled wave have none, noise
// has a variance of 6. The median keeps single jumps out.
double Scatter(const Series& series);

Waves FindWaves(const Series& series);

// The average of each whole wave (from turn to turn of the kind of which there are more), as a series. Its covariance
// has what errors of the points leave, and what comes of a wave being seen at few points.
Series CycleMeans(const Series& series, const Waves& waves);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SERIES_WAVES_H_
