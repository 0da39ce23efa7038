#include "report/verdict_words.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "report/estimate.h"

namespace cadastre {
namespace {

// A change of less than this share of the level over the whole series is none; it can be excluded where two standard
// errors are less.
constexpr double kNoChangeShare = 0.05;
constexpr double kNothingBytes = 64 << 10;  // nobody looks for less

// A power of two that is easy to type, at least 4 KiB.
uint64_t RoundedInterval(double bytes) {
  uint64_t interval = 4096;
  while (static_cast<double>(interval * 2) <= bytes) interval *= 2;
  return interval;
}

}  // namespace

std::string SignedText(double bytes) { return absl::StrCat(bytes < 0 ? "" : "+", FormatBytes(bytes)); }

std::string RateText(double bytes_per_hour) {
  return absl::StrCat(bytes_per_hour < 0 ? "-" : "", FormatBytes(std::fabs(bytes_per_hour)), "/h");
}

std::string HoursText(double hours) { return FormatDuration(hours * 3600); }

Verdict MakeVerdict(GrowthKind kind, const std::string& reason) {
  Verdict verdict;
  verdict.kind = kind;
  verdict.reason = reason;
  return verdict;
}

Verdict MakeTrend(double bytes_per_hour, double error, const std::string& reason) {
  Verdict verdict = MakeVerdict(bytes_per_hour > 0 ? GrowthKind::kSteadyGrowth : GrowthKind::kShrinking, reason);
  verdict.rate_bytes_per_hour = bytes_per_hour;
  verdict.rate_error = error;
  return verdict;
}

bool IsTrend(const Verdict& verdict) {
  return verdict.kind == GrowthKind::kSteadyGrowth || verdict.kind == GrowthKind::kShrinking;
}

Verdict NotToBeTold(const Series& series, double change_bytes) {
  return MakeVerdict(GrowthKind::kTooNoisy, absl::StrCat(SignedText(change_bytes), " in ", HoursText(series.Span()),
                                                         ", and whether it goes on is not to be told yet"));
}

Verdict WithoutGrowth(const Series& series, double change_bytes, double error) {
  const double most = std::fabs(change_bytes) + 2 * error;
  const double enough = std::max({kNoChangeShare * series.Level(), 2 * series.weight_bytes, kNothingBytes});
  const std::string hidden =
      absl::StrCat("a change of ", FormatBytes(most), " in ", HoursText(series.Span()), " could hide in the errors");
  if (most <= enough) return MakeVerdict(GrowthKind::kNoChange, hidden);
  // What of the error is sampling's goes with the root of the interval; the program's own restlessness takes time.
  const double sampling = std::sqrt(series.DifferenceVariance(0, series.size() - 1));
  const double wanted = enough / 2;
  std::string advice;
  if (series.weight_bytes > 0 && sampling > 0.5 * error) {
    const double shorter = series.weight_bytes * (wanted / sampling) * (wanted / sampling);
    advice = absl::StrCat("an interval of ", FormatInterval(RoundedInterval(shorter)), " would tell");
  } else {
    // The error of a slope falls with the time to the power of 1.5. Waves that are shorter than the snapshots are apart
    // look like noise.
    advice = absl::StrCat("snapshots over ", HoursText(series.Span() * std::pow(error / wanted, 2.0 / 3)),
                          " would tell, and closer ones whether it comes in waves");
  }
  return MakeVerdict(GrowthKind::kTooNoisy, absl::StrCat(hidden, "; ", advice));
}

}  // namespace cadastre
