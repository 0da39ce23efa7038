#include "report/series_waves.h"

#include <algorithm>
#include <cmath>

#include "report/series_period.h"

namespace cadastre {
namespace {

constexpr size_t kMinPointsForScatter = 6;
constexpr double kRegularErrors = 2, kTurnErrors = 4, kTurnScatter = 6, kTurnShare = 0.02;

double MedianOf(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double Scatter(const Series& series) {
  std::vector<double> seconds;
  for (size_t i = 1; i + 1 < series.size(); i++)
    seconds.push_back(std::fabs(series.bytes[i - 1] - 2 * series.bytes[i] + series.bytes[i + 1]));
  return seconds.empty() ? 0 : 1.4826 * MedianOf(seconds) / std::sqrt(6.0);
}

Waves FindWaves(const Series& series) {
  Waves waves;
  const double scattered = series.size() >= kMinPointsForScatter ? kTurnScatter * Scatter(series) : 0;
  const double half = RegularWaveBytes(series);
  double level = 0;
  for (double bytes : series.bytes) level = std::max(level, std::fabs(bytes));
  auto went = [&](size_t from, size_t to) {  // 1 up, -1 down, 0 not to be told
    const double change = series.bytes[to] - series.bytes[from];
    const double error = std::sqrt(series.DifferenceVariance(from, to));
    double noise = std::max(kTurnErrors * error, scattered);
    if (half > 0) noise = std::min(noise, std::max(half, kRegularErrors * error));
    const double threshold = std::max(noise, kTurnShare * level);
    return change > threshold ? 1 : change < -threshold ? -1 : 0;
  };
  size_t high = 0, low = 0;
  int direction = 0;
  double falls = 0, fallen = 0;
  for (size_t i = 1; i < series.size(); i++) {
    if (series.bytes[i] > series.bytes[high]) high = i;
    if (series.bytes[i] < series.bytes[low]) low = i;
    if (direction >= 0 && went(high, i) < 0) {
      if (direction > 0) waves.highs.push_back(high);
      direction = -1;
      low = i;
    } else if (direction <= 0 && went(low, i) > 0) {
      if (direction < 0) waves.lows.push_back(low);
      direction = 1;
      high = i;
    }
  }
  for (size_t at_high : waves.highs) {
    auto next = std::upper_bound(waves.lows.begin(), waves.lows.end(), at_high);
    const double to = next != waves.lows.end() ? series.bytes[*next] : series.bytes.back();
    fallen += series.bytes[at_high] - to;
    falls++;
  }
  waves.swing_bytes = falls > 0 ? std::max(0.0, fallen / falls) : 0;
  return waves;
}

Series CycleMeans(const Series& series, const Waves& waves) {
  const std::vector<size_t>& turns = waves.lows.size() >= waves.highs.size() ? waves.lows : waves.highs;
  const size_t n = series.size(), cycles = turns.empty() ? 0 : turns.size() - 1;
  Series means;
  means.weight_bytes = series.weight_bytes;
  means.covariance.assign(cycles * cycles, 0);
  for (size_t c = 0; c < cycles; c++) {
    const auto points = static_cast<double>(turns[c + 1] - turns[c]);
    double hours = 0, bytes = 0;
    for (size_t i = turns[c]; i < turns[c + 1]; i++) {
      hours += series.hours[i] / points;
      bytes += series.bytes[i] / points;
    }
    means.hours.push_back(hours);
    means.bytes.push_back(bytes);
    for (size_t d = 0; d <= c; d++) {
      double sum = 0;
      for (size_t i = turns[c]; i < turns[c + 1]; i++) {
        for (size_t j = turns[d]; j < turns[d + 1]; j++) sum += series.covariance[i * n + j];
      }
      sum /= points * static_cast<double>(turns[d + 1] - turns[d]);
      means.covariance[c * cycles + d] = means.covariance[d * cycles + c] = sum;
    }
    // Where between two points the wave turned is not known: a point more or less near the turn moves the average by up
    // to the swing over the number of points; 0.29 is the standard deviation of what is anywhere in an interval of 1.
    const double phase = 0.29 * waves.swing_bytes / points;
    means.covariance[c * cycles + c] += phase * phase;
  }
  return means;
}

}  // namespace cadastre
