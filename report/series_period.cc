#include "report/series_period.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "report/series_fit.h"
#include "report/whitened_series.h"

namespace cadastre {
namespace {

constexpr size_t kMinPoints = 9;
constexpr double kLeastPoints = 2, kLeastWaves = 3;
constexpr double kChance = 1e-3;
constexpr double kStepsPerWave = 4;  // the fit of a frequency is good to a quarter of a wave over the series

// What of a column is not rounding: at a wave of two points the sine is 0 everywhere.
bool IsNothing(const std::vector<double>& column) {
  return std::all_of(column.begin(), column.end(), [](double value) { return std::fabs(value) < 1e-6; });
}

class PeriodSearch {
 public:
  explicit PeriodSearch(const Series& series)
      : n_(series.size()), series_(series), white_(series, RestlessnessAroundLine(series)) {
    for (double hour : series.hours) hours_.push_back(hour - series.hours.front());
    one_ = white_.Column(std::vector<double>(n_, 1));
    time_ = white_.Column(hours_);
    around_line_ = white_.Solve({&one_, &time_}).squares;
  }

  double Search() {
    if (!white_.valid() || !(around_line_ > 0)) return 0;
    const double span = series_.Span(), step = span / static_cast<double>(n_ - 1);
    const double first = kLeastWaves / span, last = 1 / (kLeastPoints * step);
    const double tried = (last - first) * span + 1;  // frequencies that do not hang together
    for (double frequency = first; frequency <= last * 1.0001; frequency += 1 / (kStepsPerWave * span)) {
      for (int harmonics : {1, 2}) Try(frequency, harmonics, tried);
    }
    return half_;
  }

 private:
  // By the likelihood of the series around a line.
  static double RestlessnessAroundLine(const Series& series) {
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (double restlessness : RestlessnessGrid(series)) {
      const WhitenedSeries white(series, restlessness);
      if (!white.valid()) continue;
      const std::vector<double> one = white.Column(std::vector<double>(series.size(), 1));
      const std::vector<double> time = white.Column(series.hours);
      const double off = white.Solve({&one, &time}).minus_two_log_likelihood;
      if (off >= least) continue;
      least = off;
      best = restlessness;
    }
    return best;
  }

  void Try(double frequency, int harmonics, double tried) {
    std::vector<std::vector<double>> waves;
    for (int h = 1; h <= harmonics; h++) {
      std::vector<double> sine(n_), cosine(n_);
      for (size_t i = 0; i < n_; i++) {
        sine[i] = std::sin(2 * M_PI * h * frequency * hours_[i]);
        cosine[i] = std::cos(2 * M_PI * h * frequency * hours_[i]);
      }
      for (std::vector<double>* column : {&sine, &cosine}) {
        if (!IsNothing(*column)) waves.push_back(std::move(*column));
      }
    }
    std::vector<std::vector<double>> whitened;
    for (const std::vector<double>& wave : waves) whitened.push_back(white_.Column(wave));
    WhitenedSeries::Columns columns = {&one_, &time_};
    for (const std::vector<double>& wave : whitened) columns.push_back(&wave);
    const WhitenedSeries::Solution solution = white_.Solve(columns);
    if (solution.values.empty()) return;
    const double left = std::max(0.0, solution.squares / around_line_);
    const double freedom = (static_cast<double>(n_) - 2 - 2 * harmonics) / 2;
    if (freedom < 1) return;
    const double chance = tried * std::pow(left, freedom) * (harmonics == 1 ? 1 : 1 + freedom * (1 - left));
    if (chance > kChance || chance >= best_) return;
    best_ = chance;
    double most = -INFINITY, least = INFINITY;
    for (size_t i = 0; i < n_; i++) {
      double value = 0;
      for (size_t w = 0; w < waves.size(); w++) value += solution.values[w + 2] * waves[w][i];
      most = std::max(most, value);
      least = std::min(least, value);
    }
    half_ = (most - least) / 2;
  }

  size_t n_;
  const Series& series_;
  WhitenedSeries white_;
  std::vector<double> hours_;       // since the first point
  std::vector<double> one_, time_;  // whitened
  double around_line_ = 0, best_ = INFINITY, half_ = 0;
};

}  // namespace

double RegularWaveBytes(const Series& series) { return series.size() < kMinPoints ? 0 : PeriodSearch(series).Search(); }

}  // namespace cadastre
