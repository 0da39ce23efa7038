#include "report/series_odds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "report/series_fit.h"
#include "report/whitened_series.h"

namespace cadastre {
namespace {

constexpr double kGoesOnShare = 0.3, kStoppedShare = 0.1;
constexpr double kHardlyCurved = 0.8;
// Back from a start that took more than is needed is an end too, up to this share of the mean rate.
constexpr double kBackShare = -0.3;
// What bends later than this leaves too little behind to be told from what does not.
constexpr double kLastPlace = 0.8;
// Growth that ended later than this has not been seen to end: what follows is too short.
constexpr double kLevelSince = 2.0 / 3;
constexpr int kTimes = 40;  // so close that the nearest one fits any curve to a thousandth of its height

double NormalBelow(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

// A column whose change over the series is 1, and how fast it goes at the end, as a multiple of its mean rate. What is
// left of a curve's rate at the end will not last: it neither goes on so nor has it ended.
struct Part {
  std::vector<double> column;
  double end_rate, lasting_rate;
};

class Odds {
 public:
  explicit Odds(const Series& series) : series_(series), n_(series.size()), hours_(series.hours) {
    for (double& hour : hours_) hour -= series.hours.front();
    span_ = hours_.back();
    const auto [least, most] = std::minmax_element(series.bytes.begin(), series.bytes.end());
    scale_ = *most - *least;
    direction_ = series.bytes.back() >= series.bytes.front() ? 1 : -1;
  }

  GrowthOdds Weigh() {
    for (double restlessness : RestlessnessGrid(series_)) {
      const WhitenedSeries white(series_, restlessness);
      if (white.valid()) WeighAt(white);
    }
    return Normalised();
  }

 private:
  struct Weight {
    double log_weight, goes_on, ended, between, none;
  };

  void WeighAt(const WhitenedSeries& white) {
    one_ = white.Column(std::vector<double>(n_, 1));
    auto part = [&](double end_rate, double lasting_rate, auto value_at) {
      std::vector<double> values(n_);
      for (size_t i = 0; i < n_; i++) values[i] = value_at(hours_[i]);
      return Part{white.Column(values), end_rate, lasting_rate};
    };
    const Part line = part(1, 1, [&](double t) { return t / span_; });
    constexpr double kThird = 1.0 / 3;
    Take(white, {}, kThird);
    // What goes on: a line, alone or beside something else. What ended: a step, a bend, a curve.
    constexpr double kGoesOn = kThird / 2, kBeside = kThird / 8, kEnded = kThird / 3;
    Take(white, {&line}, kGoesOn);
    std::vector<size_t> places;
    for (size_t k = 1; k + 1 < n_ && hours_[k] <= kLastPlace * span_; k++) places.push_back(k);
    const double each = 1.0 / static_cast<double>(std::max<size_t>(1, places.size()));
    for (size_t k : places) {
      const double at = hours_[k];
      const Part step = part(0, 0, [&](double t) { return t >= at ? 1.0 : 0.0; });
      const Part hinge = part(0, 0, [&](double t) { return std::min(t, at) / at; });
      const double late_rate = span_ / (span_ - at);
      const Part late = part(late_rate, late_rate, [&](double t) { return std::max(0.0, t - at) / (span_ - at); });
      Take(white, {&step}, kEnded * each);
      Take(white, {&hinge}, kEnded * each, at > kLevelSince * span_);
      Take(white, {&late}, kBeside * each);
      Take(white, {&step, &line}, kBeside * each);
      if (k > 1) Take(white, {&hinge, &late}, kBeside * each);
    }
    const double shortest = span_ / static_cast<double>(n_ - 1) / 2;
    for (int i = 0; i < kTimes; i++) {
      const double tau = shortest * std::pow(3 * span_ / shortest, static_cast<double>(i) / (kTimes - 1));
      const double whole = 1 - std::exp(-span_ / tau);
      const double rate = span_ / tau * std::exp(-span_ / tau) / whole;
      const Part curve =
          part(rate, rate >= kHardlyCurved ? rate : 0, [&](double t) { return (1 - std::exp(-t / tau)) / whole; });
      Take(white, {&curve}, kEnded / kTimes);
      Take(white, {&curve, &line}, kBeside / kTimes);
    }
  }

  void Take(const WhitenedSeries& white, const std::vector<const Part*>& parts, double prior, bool too_late = false) {
    WhitenedSeries::Columns columns = {&one_};
    for (const Part* part : parts) columns.push_back(&part->column);
    const WhitenedSeries::Posterior posterior = white.Weigh(columns, scale_);
    Weight weight{posterior.log_evidence + std::log(prior), 0, 0, 0, 0};
    if (too_late) {
      weight.between = 1;
    } else if (parts.empty()) {
      weight.none = 1;
    } else {
      // P(a rate is less than `share` of the mean rate).
      auto less = [&](double Part::*rate, double share) {
        double mean = 0, variance = 0;
        const size_t p = columns.size();
        for (size_t a = 1; a < p; a++) {
          const double factor = parts[a - 1]->*rate - share;
          mean += factor * posterior.values[a];
          for (size_t b = 1; b < p; b++)
            variance += factor * (parts[b - 1]->*rate - share) * posterior.covariance[a * p + b];
        }
        mean *= direction_;
        return variance > 0 ? NormalBelow(-mean / std::sqrt(variance)) : mean < 0 ? 1.0 : 0.0;
      };
      if (parts.size() == 1) {
        (parts[0]->lasting_rate >= kGoesOnShare ? weight.goes_on
         : parts[0]->end_rate <= kStoppedShare  ? weight.ended
                                                : weight.between) = 1;
      } else {
        const double to_goes_on = less(&Part::lasting_rate, kGoesOnShare);
        const double to_ended = std::min(less(&Part::end_rate, kStoppedShare), to_goes_on);
        const double back = std::min(less(&Part::end_rate, kBackShare), to_ended);
        weight.goes_on = 1 - to_goes_on;
        weight.ended = to_ended - back;
        weight.between = to_goes_on - to_ended + back;
      }
    }
    weights_.push_back(weight);
  }

  GrowthOdds Normalised() const {
    double most = -INFINITY, sum = 0;
    for (const Weight& weight : weights_) most = std::max(most, weight.log_weight);
    GrowthOdds odds;
    for (const Weight& weight : weights_) {
      const double share = std::exp(weight.log_weight - most);
      sum += share;
      odds.goes_on += share * weight.goes_on;
      odds.ended += share * weight.ended;
      odds.between += share * weight.between;
      odds.none += share * weight.none;
    }
    for (double* part : {&odds.goes_on, &odds.ended, &odds.between, &odds.none}) *part /= sum;
    return odds;
  }

  const Series& series_;
  size_t n_;
  std::vector<double> hours_;  // since the first point
  double span_, scale_, direction_;
  std::vector<double> one_;
  std::vector<Weight> weights_;
};

}  // namespace

GrowthOdds OddsOf(const Series& series) { return Odds(series).Weigh(); }

}  // namespace cadastre
