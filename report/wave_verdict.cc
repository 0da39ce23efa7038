#include "report/wave_verdict.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "report/estimate.h"
#include "report/series_fit.h"
#include "report/shape_verdict.h"
#include "report/verdict_words.h"

namespace cadastre {
namespace {

constexpr double kWavesSure = 3;             // standard errors
constexpr size_t kFewWaves = 5;              // fewer hardly say how much waves differ
constexpr double kFarFromWavesShare = 0.25;  // of the swing: so far apart the averages of few waves must be
constexpr double kTrendShare = 0.02;

// Ordinary least squares; the error from the points' own errors or from their distance to the line, whichever is more.
void TrendOf(const Series& means, double* rate, double* error) {
  const size_t n = means.size();
  double centre = 0, mean = 0, squares = 0;
  for (size_t i = 0; i < n; i++) {
    centre += means.hours[i] / static_cast<double>(n);
    mean += means.bytes[i] / static_cast<double>(n);
  }
  std::vector<double> factor(n);
  for (size_t i = 0; i < n; i++) squares += (means.hours[i] - centre) * (means.hours[i] - centre);
  *rate = 0;
  for (size_t i = 0; i < n; i++) {
    factor[i] = (means.hours[i] - centre) / squares;
    *rate += factor[i] * means.bytes[i];
  }
  double known = 0, rest = 0;
  for (size_t i = 0; i < n; i++) {
    for (size_t j = 0; j < n; j++) known += factor[i] * factor[j] * means.Covariance(i, j);
    const double distance = means.bytes[i] - mean - *rate * (means.hours[i] - centre);
    rest += distance * distance;
  }
  const double scattered = n > 2 ? rest / static_cast<double>(n - 2) / squares : 0;
  *error = std::sqrt(std::max(known, scattered));
}

Verdict OfWaves(const Series& series, const Waves& waves) {
  const size_t falls = waves.highs.size();
  std::string text = absl::StrCat(falls, falls == 1 ? " fall" : " falls", " of ", FormatBytes(waves.swing_bytes),
                                  " in ", HoursText(series.Span()));
  const Series means = CycleMeans(series, waves);
  if (means.size() >= 2) {
    double rate, error;
    TrendOf(means, &rate, &error);
    const double change = rate * means.Span();
    const bool few = means.size() < kFewWaves;
    const bool far = !few || std::fabs(change) > kFarFromWavesShare * waves.swing_bytes;
    if (far && std::fabs(rate) > (few ? kWavesSure + 1 : kWavesSure) * error &&
        std::fabs(change) > kTrendShare * means.Level())
      return MakeTrend(rate, error, absl::StrCat(text, ", and the average of each wave goes on by ", RateText(rate)));
    absl::StrAppend(&text, ", and the averages of ", means.size(), " waves have no trend");
  }
  // Waves that are not told apart well: over one wave or more, a line through a wave goes up or down by less than its
  // height.
  double rate, error;
  TrendOf(series, &rate, &error);
  if (std::fabs(rate) * series.Span() - 2 * error * series.Span() > waves.swing_bytes)
    return MakeTrend(rate, error, absl::StrCat(text, ", and ", RateText(rate), " through them"));
  return MakeVerdict(GrowthKind::kSawtooth, text);
}

}  // namespace

Verdict JudgeWaves(const Series& series, const Waves& waves) {
  Verdict verdict = OfWaves(series, waves);
  // Waves over something that came to its end have a trend too.
  if (IsTrend(verdict) && series.size() >= kMinFitPoints && !OddsAllowTrend(series))
    return NotToBeTold(series, series.bytes.back() - series.bytes.front());
  return verdict;
}

}  // namespace cadastre
