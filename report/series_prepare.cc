#include "report/series_prepare.h"

#include <algorithm>
#include <cmath>

#include "report/series_fit.h"

namespace cadastre {
namespace {

// At most kMaxFitPoints of them, spread evenly, the last one among them.
Series Thinned(const Series& series) {
  if (series.size() <= kMaxFitPoints) return series;
  std::vector<size_t> kept;
  for (size_t i = 0; i < kMaxFitPoints; i++) kept.push_back(i * (series.size() - 1) / (kMaxFitPoints - 1));
  return series.At(kept);
}

// The variance is estimated from the same samples, and where none is new it says 0: half a sample's weight stands for
// what may be there unseen.
void AddUnseen(Series* series) {
  const double unseen = series->weight_bytes / 2;
  for (size_t i = 0; i < series->size(); i++) series->covariance[i * series->size() + i] += unseen * unseen;
}

// The variance goes with what was sampled: where chance took few samples it says too little, and the series seems to
// rise from there more surely than it does. A point below the average is taken to be as uncertain as the average.
void LevelErrors(Series* series) {
  const double level = series->Level();
  std::vector<double> factor(series->size(), 1);
  for (size_t i = 0; i < series->size(); i++) {
    if (series->bytes[i] > 0 && series->bytes[i] < level)
      factor[i] = std::sqrt(std::min(4.0, level / series->bytes[i]));
  }
  for (size_t i = 0; i < series->size(); i++) {
    for (size_t j = 0; j < series->size(); j++) series->covariance[i * series->size() + j] *= factor[i] * factor[j];
  }
}

}  // namespace

Series PrepareSeries(const Series& series) {
  Series judged = Thinned(series);
  LevelErrors(&judged);
  AddUnseen(&judged);
  return judged;
}

}  // namespace cadastre
