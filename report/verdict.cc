#include "report/verdict.h"

#include <algorithm>
#include <cmath>

#include "report/few_points.h"
#include "report/series_fit.h"
#include "report/series_prepare.h"
#include "report/series_waves.h"
#include "report/shape_verdict.h"
#include "report/wave_verdict.h"

namespace cadastre {

double Series::DifferenceVariance(size_t i, size_t j) const {
  return std::max(0.0, Covariance(i, i) + Covariance(j, j) - 2 * Covariance(i, j));
}

double Series::Level() const {
  double sum = 0;
  for (double value : bytes) sum += std::fabs(value);
  return sum / static_cast<double>(size());
}

const char* GrowthKindName(GrowthKind kind) {
  static constexpr const char* kNames[] = {"",         "steady growth", "levelling off", "step",
                                           "sawtooth", "no change",     "too noisy",     "shrinking"};
  return kNames[static_cast<int>(kind)];
}

Verdict JudgeSeries(const Series& series) {
  if (series.size() < 3 || !(series.Span() > 0)) return {};
  const Series judged = PrepareSeries(series);
  const Waves waves = FindWaves(judged);
  if (waves.are_waves()) return JudgeWaves(judged, waves);
  return judged.size() < kMinFitPoints ? JudgeFewPoints(judged) : JudgeShapes(judged);
}

}  // namespace cadastre
