#include "report/verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "report/excursion.h"
#include "report/few_points.h"
#include "report/series_fit.h"
#include "report/series_prepare.h"
#include "report/series_waves.h"
#include "report/shape_verdict.h"
#include "report/verdict_words.h"
#include "report/wave_verdict.h"

namespace cadastre {
namespace {

constexpr size_t kFewestPoints = 3;
constexpr size_t kShortSeries = 3;    // what takes more of the series than one part of so many is no event in it
constexpr double kSmallShare = 0.05;  // of the level: an event that is no news by itself

Verdict JudgePrepared(const Series& series);

// What an event that is over leaves is judged, and the event told.
Verdict JudgeAround(const Excursion& event, const Series& series) {
  const Series rest = WithoutExcursion(series, event);
  Verdict verdict = JudgePrepared(rest);
  const std::string told = absl::StrCat(SignedText(event.bytes), " for ", HoursText(event.hours), ", and back");
  if (verdict.kind == GrowthKind::kNoChange && std::fabs(event.bytes) > kSmallShare * rest.Level())
    return MakeVerdict(GrowthKind::kSawtooth, absl::StrCat("once ", told, "; level beside that"));
  absl::StrAppend(&verdict.reason, "; once ", told);
  return verdict;
}

Verdict JudgePrepared(const Series& series) {
  const Waves waves = FindWaves(series);
  if (waves.are_waves()) return JudgeWaves(series, waves);
  if (const std::optional<Excursion> event = FindExcursion(series)) return JudgeAround(*event, series);
  return series.size() < kMinFitPoints ? JudgeFewPoints(series) : JudgeShapes(series);
}

}  // namespace

double Series::DifferenceVariance(size_t i, size_t j) const {
  return std::max(0.0, Covariance(i, i) + Covariance(j, j) - 2 * Covariance(i, j));
}

double Series::Level() const {
  double sum = 0;
  for (double value : bytes) sum += std::fabs(value);
  return sum / static_cast<double>(size());
}

Series Series::At(const std::vector<size_t>& points) const {
  Series part;
  part.weight_bytes = weight_bytes;
  for (size_t i : points) {
    part.hours.push_back(hours[i]);
    part.bytes.push_back(bytes[i]);
    for (size_t j : points) part.covariance.push_back(Covariance(i, j));
  }
  return part;
}

const char* GrowthKindName(GrowthKind kind) {
  static constexpr const char* kNames[] = {"",         "steady growth", "levelling off", "step",
                                           "sawtooth", "no change",     "too noisy",     "shrinking"};
  return kNames[static_cast<int>(kind)];
}

Verdict JudgeSeries(const Series& series) {
  if (series.size() < kFewestPoints || !(series.Span() > 0)) return {};
  return JudgePrepared(PrepareSeries(series));
}

}  // namespace cadastre
