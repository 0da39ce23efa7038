#include "report/series_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/whitened_series.h"

namespace cadastre {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSearchedParameters = 2;
// A curve has a tenth of its slope left after 2.3 tau.
constexpr double kHingeShare = 0.8, kEndedShare = 1 / 2.3;
constexpr int kCurves = 28, kRestlessnessSteps = 10;
constexpr int kRefinements = 10;  // of a curve's time: each leaves 0.62 of what it may be
constexpr size_t kLevelPoints = 2;
constexpr double kShapeShare = 5e-4;  // of the range: no program keeps closer to a shape, and no search to a curve

class Fitter {
 public:
  explicit Fitter(const Series& series) : n_(series.size()), hours_(series.hours), series_(series) {
    span_ = hours_.back() - hours_.front();
    for (double& hour : hours_) hour -= series.hours.front();
    for (size_t i = 0; i + 1 < n_; i++)
      step_variance_ += series.DifferenceVariance(i, i + 1) / 2 / static_cast<double>(n_ - 1);
    fits_.fits.resize(kShapes);
    for (size_t i = 0; i < fits_.fits.size(); i++) {
      fits_.fits[i].shape = static_cast<Shape>(i);
      fits_.fits[i].criterion = kInfinity;
    }
  }

  SeriesFits Fit() {
    // The errors come from the samples too: of few, they are none too sure themselves.
    double level = 0;
    for (double bytes : series_.bytes) level = std::max(level, std::fabs(bytes));
    if (series_.weight_bytes > 0 && level > 0)
      few_samples_ = 1 + 1 / std::sqrt(std::max(1.0, level / series_.weight_bytes));
    for (double restlessness : RestlessnessGrid(series_)) FitAt(restlessness);
    return fits_;
  }

 private:
  void FitAt(double restlessness) {
    const WhitenedSeries white(series_, restlessness);
    if (!white.valid()) return;
    restlessness_ = restlessness;
    one_ = Column(white, [](size_t) { return 1.0; });
    time_ = Column(white, [&](size_t i) { return hours_[i]; });
    Take(Shape::kConstant, white.Solve({&one_}), 0);
    Take(Shape::kLine, white.Solve({&one_, &time_}), 0);
    std::vector<std::vector<double>> steps = {one_};
    for (size_t k = 1; k < n_; k++) {
      steps.push_back(Column(white, [&](size_t i) { return i >= k ? 1.0 : 0.0; }));
      Take(Shape::kStep, white.Solve({&one_, &steps[k]}), k);
      if (k + 1 < n_) Take(Shape::kStepLine, white.Solve({&one_, &steps[k], &time_}), k);
      if (k + 1 < n_) FitBends(white, k);
    }
    FitTwoSteps(white, steps);
    FitCurves(white);
  }

  template <typename ValueAt>
  std::vector<double> Column(const WhitenedSeries& white, ValueAt value_at) const {
    std::vector<double> values(n_);
    for (size_t i = 0; i < n_; i++) values[i] = value_at(i);
    return white.Column(values);
  }

  void FitBends(const WhitenedSeries& white, size_t k) {
    const std::vector<double> late = Column(white, [&](size_t i) { return std::max(0.0, hours_[i] - hours_[k]); });
    const std::vector<double> hinge = Column(white, [&](size_t i) { return std::min(hours_[i], hours_[k]); });
    if (hours_[k] <= kHingeShare * span_ && k + 3 < n_) Take(Shape::kHinge, white.Solve({&one_, &hinge}), k);
    Take(Shape::kLate, white.Solve({&one_, &late}), k);
    if (k > 1 && k + 2 < n_) Take(Shape::kBend, white.Solve({&one_, &hinge, &late}), k);
  }

  // The best second step beside the best first one, and then the best first one beside that: all pairs would take n
  // times as long.
  void FitTwoSteps(const WhitenedSeries& white, const std::vector<std::vector<double>>& steps) {
    if (n_ < 3 * kLevelPoints) return;
    auto best_beside = [&](size_t other) {  // 0: the best one alone
      size_t best = 0;
      double least = kInfinity;
      for (size_t k = kLevelPoints; k + kLevelPoints <= n_; k++) {
        if (other > 0 && std::max(k, other) - std::min(k, other) < kLevelPoints) continue;
        const WhitenedSeries::Solution solution =
            other == 0 ? white.Solve({&one_, &steps[k]})
                       : white.Solve({&one_, &steps[std::min(k, other)], &steps[std::max(k, other)]});
        if (other > 0) Take(Shape::kTwoSteps, solution, std::min(k, other), std::max(k, other));
        if (solution.minus_two_log_likelihood >= least) continue;
        least = solution.minus_two_log_likelihood;
        best = k;
      }
      return best;
    };
    const size_t first = best_beside(0);
    const size_t second = first > 0 ? best_beside(first) : 0;
    if (second > 0) best_beside(second);
  }

  void FitCurves(const WhitenedSeries& white) {
    const double shortest = span_ / static_cast<double>(n_ - 1) / 2;
    const double ratio = std::pow(3 * span_ / shortest, 1.0 / (kCurves - 1));
    double best = shortest, least = kInfinity;
    for (int i = 0; i < kCurves; i++) {
      const double tau = shortest * std::pow(ratio, i), off = FitCurve(white, tau, /*beside_line=*/true);
      if (off >= least) continue;
      least = off;
      best = tau;
    }
    // Between the steps of the search an exact curve is as far off as others are: golden section.
    constexpr double kGolden = 0.618;
    double low = std::log(best / ratio), high = std::log(best * ratio);
    for (int i = 0; i < kRefinements; i++) {
      const double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
      if (FitCurve(white, std::exp(a), false) < FitCurve(white, std::exp(b), false)) {
        high = b;
      } else {
        low = a;
      }
    }
  }

  // How far off a curve alone is.
  double FitCurve(const WhitenedSeries& white, double tau, bool beside_line) {
    tau_ = tau;
    const std::vector<double> curve = Column(white, [&](size_t i) { return 1 - std::exp(-hours_[i] / tau); });
    const WhitenedSeries::Solution solution = white.Solve({&one_, &curve});
    Take(tau <= kEndedShare * span_ ? Shape::kCurve : Shape::kSlowCurve, solution, 0);
    if (beside_line && tau < span_ / 2) Take(Shape::kCurveLine, white.Solve({&one_, &curve, &time_}), 0);
    return solution.minus_two_log_likelihood;
  }

  static bool IsSearched(Shape shape) { return shape != Shape::kConstant && shape != Shape::kLine; }

  void Take(Shape shape, const WhitenedSeries::Solution& solution, size_t place, size_t second_place = 0) {
    if (solution.values.empty()) return;
    const size_t p = solution.values.size();
    const double searched = shape == Shape::kTwoSteps ? 2 : IsSearched(shape) ? 1 : 0;
    const double parameters = static_cast<double>(p) + 1 + searched * kSearchedParameters;
    const double criterion = solution.minus_two_log_likelihood + parameters * std::log(static_cast<double>(n_));
    ShapeFit& fit = fits_.fits[static_cast<size_t>(shape)];
    if (criterion >= fit.criterion) return;
    fit = {};
    fit.shape = shape;
    fit.criterion = criterion;
    fit.place = place;
    fit.second_place = second_place;
    fit.restlessness = restlessness_;
    auto error = [&](size_t a) { return std::sqrt(std::max(0.0, solution.covariance[a * p + a])); };
    const double freedom = std::max(1.0, static_cast<double>(n_) + 1 - parameters);  // s is none of them
    const double guessed = restlessness_ * restlessness_;
    fit.sure = 3 * few_samples_ * (1 + 3 / freedom * guessed / (guessed + step_variance_));
    const bool curved = shape == Shape::kCurve || shape == Shape::kSlowCurve || shape == Shape::kCurveLine;
    if (curved) fit.tau_hours = tau_;
    if (curved || shape == Shape::kStep || shape == Shape::kStepLine || shape == Shape::kTwoSteps) {
      fit.change = solution.values[1];
      fit.change_error = error(1);
    }
    if (shape == Shape::kTwoSteps) {
      fit.second_change = solution.values[2];
      fit.second_error = error(2);
    }
    if (shape == Shape::kHinge) {
      fit.change = solution.values[1] * hours_[place];
      fit.change_error = error(1) * hours_[place];
    }
    if (shape == Shape::kLine || shape == Shape::kLate) {
      fit.slope = solution.values[1];
      fit.slope_error = error(1);
    }
    if (shape == Shape::kCurveLine || shape == Shape::kStepLine || shape == Shape::kBend) {
      fit.slope = solution.values[2];
      fit.slope_error = error(2);
    }
    if (shape == Shape::kBend) {
      fit.first_slope = solution.values[1];
      fit.change = fit.first_slope * hours_[place];
      fit.change_error = error(1) * hours_[place];
    }
  }

  size_t n_;
  std::vector<double> hours_;  // since the first point
  const Series& series_;
  double span_ = 0, restlessness_ = 0, tau_ = 0;
  std::vector<double> one_, time_;  // whitened
  double few_samples_ = 1;
  double step_variance_ = 0;  // of measurement, of one point against its neighbour
  SeriesFits fits_;
};

}  // namespace

std::vector<double> RestlessnessGrid(const Series& series) {
  const auto n = static_cast<double>(series.size());
  double mean = 0, squares = 0, level = 0;
  for (double bytes : series.bytes) mean += bytes / n;
  for (double bytes : series.bytes) {
    squares += (bytes - mean) * (bytes - mean) / n;
    level = std::max(level, std::fabs(bytes));
  }
  const double most = std::sqrt(squares);
  // No program is known more exactly than this: without it an exact series fits every shape infinitely badly.
  const auto [low, high] = std::minmax_element(series.bytes.begin(), series.bytes.end());
  const double least = std::max({16.0, level * 1e-6, kShapeShare * (*high - *low)});
  std::vector<double> grid = {least};
  for (int step = 1; step <= kRestlessnessSteps; step++) {
    const double s = most * std::pow(0.01, 1 - static_cast<double>(step) / kRestlessnessSteps);
    if (s >= least) grid.push_back(s);
  }
  return grid;
}

const ShapeFit& SeriesFits::best() const {
  return *std::min_element(fits.begin(), fits.end(),
                           [](const ShapeFit& a, const ShapeFit& b) { return a.criterion < b.criterion; });
}

SeriesFits FitShapes(const Series& series) { return Fitter(series).Fit(); }

bool SlopeBehind(const Series& series, const ShapeFit& fit, double* slope, double* error) {
  const WhitenedSeries white(series, fit.restlessness);
  if (!white.valid()) return false;
  const double began = series.hours[0], place = series.hours[fit.place];
  std::vector<double> one(series.size(), 1), shape, behind;
  for (double hour : series.hours) {
    if (fit.shape == Shape::kCurve) {
      shape.push_back(1 - std::exp(-(hour - began) / fit.tau_hours));
      behind.push_back(hour - began);
    } else {
      shape.push_back(fit.shape == Shape::kStep ? (hour >= place ? 1 : 0) : std::min(hour, place) - began);
      behind.push_back(std::max(0.0, hour - place));
    }
  }
  one = white.Column(one);
  shape = white.Column(shape);
  behind = white.Column(behind);
  const WhitenedSeries::Solution solution = white.Solve({&one, &shape, &behind});
  if (solution.values.empty()) return false;
  *slope = solution.values[2];
  *error = std::sqrt(std::max(0.0, solution.covariance[8]));
  return true;
}

}  // namespace cadastre
