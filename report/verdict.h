// What a series of measurements of one owner says: does it grow, has it filled up, did it jump, or is it not to be
// told?
//
// Pure statistics over numbers; where they come from is growth's affair. Units: hours, bytes, bytes an hour. Errors:
// none; a series of fewer than three points has no verdict (JudgeSeries says kNone). Thread-safety: pure.
//
// How: waves are looked for first (wave_verdict), then one event that is over (excursion), which the rest is judged
// without; three to five points by their increments (few_points); from six on by
// the shape that fits best (shape_verdict). Whether growth goes on or has ended is not left to one shape, which may fit
// by chance: the odds over all shapes must say the same (series_odds). The mistakes that matter are a leak that is
// called warm-up and a warm-up that is called a leak, so whatever lies between the two is kTooNoisy, with the reason:
//   steady growth   a slope at the end of the series, beyond three standard errors, that does not vanish
//   levelling off   growth whose end is in the series: a bound, a start-up
//   step            one jump between two levels, or two
//   sawtooth        rises and falls, without a trend of their averages; or one rise that was given back
//   no change       no growth, and what could hide in the errors is small
//   too noisy       anything may hide in the errors, or the end of the growth is not in sight
//   shrinking       steady growth downwards
//
// Example:
//   Series series{{0, 1, 2}, {100e6, 150e6, 200e6}, covariance, 512 * 1024};
//   Verdict verdict = JudgeSeries(series);   // kSteadyGrowth, 50e6 an hour
#ifndef CADASTRE_REPORT_VERDICT_H_
#define CADASTRE_REPORT_VERDICT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cadastre {

struct Series {
  std::vector<double> hours;       // ascending
  std::vector<double> bytes;       // as many
  std::vector<double> covariance;  // of their errors of measurement, row by row; bytes^2
  double weight_bytes = 0;         // what one sample stands for; 0 = every allocation was recorded

  size_t size() const { return bytes.size(); }
  double Covariance(size_t i, size_t j) const { return covariance[i * size() + j]; }
  double DifferenceVariance(size_t i, size_t j) const;  // of bytes[j] - bytes[i]; never negative
  double Span() const { return hours.back() - hours.front(); }
  double Level() const;                                // mean of the points' sizes
  Series At(const std::vector<size_t>& points) const;  // these points alone
};

enum class GrowthKind {
  kNone,
  kSteadyGrowth,
  kLevellingOff,
  kStep,
  kSawtooth,
  kNoChange,
  kTooNoisy,
  kShrinking,
};

const char* GrowthKindName(GrowthKind kind);  // "steady growth"; kNone is ""

struct Verdict {
  GrowthKind kind = GrowthKind::kNone;
  // Of steady growth and shrinking.
  std::optional<double> rate_bytes_per_hour;
  double rate_error = 0;
  std::string reason;  // one line, of numbers of this series
};

Verdict JudgeSeries(const Series& series);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_VERDICT_H_
