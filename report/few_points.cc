#include "report/few_points.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "report/verdict_words.h"

namespace cadastre {
namespace {

constexpr double kFewSure = 3.3;  // standard errors
// Of the first growth: at most so much is levelling off, at least so much goes on.
constexpr double kFewLevelShare = 0.05, kSteadyShare = 0.5;
// The second growth, where it is surely less than the first, of the first: what slows down more has an end, and nobody
// can tell where.
constexpr double kFewHardlySlowerShare = 0.8;

size_t MiddleOf(const Series& series) {
  const size_t last = series.size() - 1;
  const double half = (series.hours[0] + series.hours[last]) / 2;
  size_t middle = 1;
  for (size_t i = 1; i < last; i++) {
    if (std::fabs(series.hours[i] - half) < std::fabs(series.hours[middle] - half)) middle = i;
  }
  return middle;
}

}  // namespace

Verdict JudgeFewPoints(const Series& series) {
  const size_t last = series.size() - 1, middle = MiddleOf(series);
  const double first = series.bytes[middle] - series.bytes[0], second = series.bytes[last] - series.bytes[middle];
  const double total = first + second;
  // What an exact profile moves by for no reason: a table that grows, a buffer.
  const double floor = std::max(4096.0, 0.001 * series.Level());
  auto error_of = [&](size_t i, size_t j) {
    return std::hypot(std::sqrt(series.DifferenceVariance(i, j)), floor / kFewSure);
  };
  const double first_error = error_of(0, middle), second_error = error_of(middle, last), error = error_of(0, last);
  const double first_hours = series.hours[middle] - series.hours[0];
  const double second_hours = series.hours[last] - series.hours[middle];
  const bool moved_first = std::fabs(first) > kFewSure * first_error;
  const bool moved_second = std::fabs(second) > kFewSure * second_error;
  const bool moved = std::fabs(total) > kFewSure * error;
  const std::string increments = absl::StrCat(SignedText(first), ", then ", SignedText(second));
  if (!moved_first && !moved_second && !moved) return WithoutGrowth(series, total, error);
  if (moved_first && moved_second && first * second < 0) {
    if (!moved || std::fabs(total) < 0.5 * std::min(std::fabs(first), std::fabs(second)))
      return MakeVerdict(GrowthKind::kSawtooth, increments);
    return MakeVerdict(GrowthKind::kTooNoisy, absl::StrCat(increments, ": another snapshot would tell"));
  }
  const double first_rate = first / first_hours, second_rate = second / second_hours;
  const double ratio = first_rate != 0 ? second_rate / first_rate : 0;
  const double ratio_error =
      first_rate != 0
          ? std::hypot(second_error / second_hours, ratio * first_error / first_hours) / std::fabs(first_rate)
          : 0;
  const double rate = total / series.Span(), rate_error = error / series.Span();
  // Where chance took few samples of what was added, its error says too little: growth that goes on has the error that
  // it had before.
  const double unseen_error =
      std::max(second_error, first_error * std::sqrt(kSteadyShare * second_hours / first_hours));
  if (moved_first && std::fabs(second) + 2 * unseen_error < kSteadyShare * std::fabs(first_rate) * second_hours &&
      (!moved_second || std::fabs(ratio) <= kFewLevelShare)) {
    return MakeVerdict(GrowthKind::kLevellingOff, increments);
  }
  const bool faster = first_rate == 0 || std::fabs(ratio) - 2 * ratio_error > 1 / kSteadyShare;
  if (moved_second && !moved_first && faster &&
      std::fabs(first) + 2 * first_error < kSteadyShare * std::fabs(second_rate) * first_hours) {
    return MakeVerdict(GrowthKind::kStep, absl::StrCat(increments, ": another snapshot would tell whether it goes on"));
  }
  if (moved && ratio + 2 * ratio_error >= 1 && ratio > kSteadyShare) return MakeTrend(rate, rate_error, increments);
  if (moved && moved_first && moved_second && ratio >= kFewHardlySlowerShare)
    return MakeTrend(second_rate, second_error / second_hours, increments);
  return MakeVerdict(GrowthKind::kTooNoisy,
                     absl::StrCat(increments, ": another snapshot would tell whether it goes on"));
}

}  // namespace cadastre
