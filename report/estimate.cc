#include "report/estimate.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cadastre {
namespace {

// Decimals that an error of this size leaves meaningful; negative = round to tens, hundreds...
int DecimalsForError(double error) {
  int exponent = static_cast<int>(std::floor(std::log10(error)));
  double leading = error / std::pow(10.0, exponent);
  // 2.95 rounds to 3 with one digit: take one digit from there on, as the printed first digit is then 3.
  return (leading < 2.95 ? 1 : 0) - exponent;
}

double RoundTo(double value, int decimals) {
  double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}

// Decimals for four significant digits at most.
int MaxDecimals(double value) {
  double magnitude = std::fabs(value);
  if (magnitude >= 1000) return 0;
  if (magnitude >= 100) return 1;
  if (magnitude >= 10) return 2;
  return 2;
}

// Three significant digits: what a reader takes in at a glance when there is no error to say how many count.
int PlainDecimals(double value) {
  double magnitude = std::fabs(value);
  return magnitude >= 100 || magnitude == 0 ? 0 : magnitude >= 10 ? 1 : 2;
}

std::string WithThousands(double value) {
  std::string digits = absl::StrFormat("%.0f", std::fabs(value));
  std::string text = std::signbit(value) && digits != "0" ? "-" : "";
  for (size_t i = 0; i < digits.size(); i++) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string Number(double value, int decimals) {
  return absl::StrFormat("%.*f", std::max(decimals, 0), RoundTo(value, decimals));
}

struct Unit {
  double bytes;
  const char* name;
};

Unit UnitFor(double bytes) {
  double magnitude = std::fabs(bytes);
  // 1023.6 MiB would print as "1024 MiB"; take the next unit from 1000 of the smaller one up.
  if (magnitude >= 1000 * kGiB) return {1024 * kGiB, "TiB"};
  if (magnitude >= 1000 * kMiB) return {kGiB, "GiB"};
  if (magnitude >= 1000 * kKiB) return {kMiB, "MiB"};
  if (magnitude >= 1000) return {kKiB, "KiB"};
  return {1, "B"};
}

}  // namespace

double Estimate::StandardError() const { return variance > 0 ? std::sqrt(variance) : 0; }

void Tally::AddLive(uint64_t size_bytes, uint64_t weight_bytes, bool old) {
  double size = static_cast<double>(size_bytes), weight = static_cast<double>(weight_bytes);
  double variance = weight > size ? weight * (weight - size) : 0;
  double count = size_bytes == 0 || weight_bytes <= size_bytes ? 1 : weight / size;
  live_bytes += weight_bytes;
  live_variance += variance;
  live_count += count;
  live_count_variance += count * (count - 1);
  live_samples++;
  if (old) {
    old_bytes += weight_bytes;
    old_variance += variance;
  }
}

void Tally::Add(const Tally& other) {
  live_bytes += other.live_bytes;
  live_variance += other.live_variance;
  live_count += other.live_count;
  live_count_variance += other.live_count_variance;
  live_samples += other.live_samples;
  allocated_bytes += other.allocated_bytes;
  allocated_variance += other.allocated_variance;
  allocated_count += other.allocated_count;
  samples += other.samples;
  peak_bytes += other.peak_bytes;
  peak_variance += other.peak_variance;
  old_bytes += other.old_bytes;
  mapped_bytes += other.mapped_bytes;
  old_variance += other.old_variance;
}

Estimate EstimateOf(const Tally& tally, Metric metric) {
  switch (metric) {
    case Metric::kLive:
      return {static_cast<double>(tally.live_bytes), tally.live_variance};
    case Metric::kAllocated:
      return {static_cast<double>(tally.allocated_bytes), tally.allocated_variance};
    case Metric::kCount:
      return {tally.live_count, tally.live_count_variance};
    case Metric::kPeak:
      return {static_cast<double>(tally.peak_bytes), tally.peak_variance};
    case Metric::kOld:
      return {static_cast<double>(tally.old_bytes), tally.old_variance};
    case Metric::kMapped:
      return {static_cast<double>(tally.mapped_bytes), 0};
  }
  return {};
}

double ShareErrorPercent(const Estimate& part, const Estimate& total) {
  if (total.value <= 0) return 0;
  double share = part.value / total.value;
  // var(x/t) = (var x (1-s)^2 + s^2 (var t - var x)) / t^2: what is inside the part and what is outside are
  // independent.
  double outside = std::max(0.0, total.variance - part.variance);
  double variance = part.variance * (1 - share) * (1 - share) + share * share * outside;
  return 100 * std::sqrt(std::max(0.0, variance)) / total.value;
}

std::string FormatBytes(double bytes) {
  Unit unit = UnitFor(bytes);
  double value = bytes / unit.bytes;
  return absl::StrCat(Number(value, unit.bytes == 1 ? 0 : PlainDecimals(value)), " ", unit.name);
}

std::string FormatBytes(double bytes, double error) {
  if (!(error > 0)) return FormatBytes(bytes);
  Unit unit = UnitFor(std::max(std::fabs(bytes), error));
  double value = bytes / unit.bytes;
  double scaled = error / unit.bytes;
  int decimals = std::min(DecimalsForError(scaled), unit.bytes == 1 ? 0 : MaxDecimals(value));
  std::string error_text = Number(scaled, decimals);
  // Smaller than the last printed place: rounded up, never printed as 0.
  if (RoundTo(scaled, decimals) == 0) error_text = Number(std::pow(10.0, -decimals), decimals);
  return absl::StrCat(Number(value, decimals), " ", unit.name, " ±", error_text);
}

std::string FormatCount(double count) { return WithThousands(std::round(count)); }

std::string FormatCount(double count, double error) {
  if (!(error > 0)) return FormatCount(count);
  int decimals = std::min(0, DecimalsForError(error));
  return absl::StrCat(WithThousands(RoundTo(count, decimals)), " ±",
                      WithThousands(std::max(1.0, RoundTo(error, decimals))));
}

std::string FormatShare(double percent, double error) {
  if (percent == 0) return "0 %";
  int decimals = error >= 0.95 || percent >= 99.95 ? 0 : 1;
  if (RoundTo(percent, decimals) == 0) return decimals == 0 ? "<1 %" : "<0.1 %";
  return absl::StrCat(Number(percent, decimals), " %");
}

std::string FormatDuration(double seconds) {
  if (seconds < 1) return absl::StrFormat("%.2f s", std::max(seconds, 0.0));
  if (seconds < 10) return absl::StrFormat("%.1f s", seconds);
  if (seconds < 600) return absl::StrFormat("%.0f s", seconds);
  uint64_t minutes = static_cast<uint64_t>(seconds / 60);
  if (minutes < 120) return absl::StrCat(minutes, " min");
  uint64_t hours = minutes / 60;
  if (hours < 48) return absl::StrCat(hours, " h ", minutes % 60, " min");
  return absl::StrCat(hours / 24, " d ", hours % 24, " h");
}

std::string FormatInterval(uint64_t bytes) {
  if (bytes >= (1ull << 30) && bytes % (1ull << 30) == 0) return absl::StrCat(bytes >> 30, " GiB");
  if (bytes >= (1ull << 20) && bytes % (1ull << 20) == 0) return absl::StrCat(bytes >> 20, " MiB");
  if (bytes >= 1024 && bytes % 1024 == 0) return absl::StrCat(bytes >> 10, " KiB");
  return absl::StrCat(bytes, " B");
}

}  // namespace cadastre
