#include "report/excursion.h"

#include <algorithm>
#include <cmath>

#include "report/series_fit.h"
#include "report/series_waves.h"

namespace cadastre {
namespace {

constexpr double kFarShare = 0.7;     // of the way from the top down to a side: as far as that is out of it
constexpr double kSlopeShare = 0.05;  // of its height: what goes on down so steeply belongs to it
constexpr size_t kShort = 2;          // at most one part of so many
// Scatter comes from second differences, which few points hardly know, and the distance to a line from all points.
constexpr double kErrors = 4, kScatters = 6, kLineErrors = 4, kShare = 0.02;

// Standard deviation of the points around a line through them.
double AroundLine(const Series& series) {
  const auto n = static_cast<double>(series.size());
  double hours = 0, bytes = 0, squares = 0, products = 0, rest = 0;
  for (size_t i = 0; i < series.size(); i++) {
    hours += series.hours[i] / n;
    bytes += series.bytes[i] / n;
  }
  for (size_t i = 0; i < series.size(); i++) {
    squares += (series.hours[i] - hours) * (series.hours[i] - hours);
    products += (series.hours[i] - hours) * (series.bytes[i] - bytes);
  }
  for (size_t i = 0; i < series.size(); i++) {
    const double distance = series.bytes[i] - bytes - products / squares * (series.hours[i] - hours);
    rest += distance * distance;
  }
  return std::sqrt(rest / (n - 2));
}

// The rise around the highest point; `sign` -1: the fall around the lowest.
std::optional<Excursion> Around(const Series& series, double sign) {
  const size_t n = series.size();
  auto height = [&](size_t i) { return sign * series.bytes[i]; };
  size_t top = 0;
  for (size_t i = 1; i < n; i++) top = height(i) > height(top) ? i : top;
  if (top == 0 || top + 1 == n) return std::nullopt;
  // The first point on the way out (`step` 1 or -1) that is not in it.
  auto side = [&](int step) {
    const size_t end = step > 0 ? n - 1 : 0;
    double lowest = height(top);
    for (size_t i = top; i != end; i += step) lowest = std::min(lowest, height(i + step));
    const double tall = height(top) - lowest;
    size_t at = top + step;
    while (at != end && height(at) > height(top) - kFarShare * tall) at += step;
    while (at != end && height(at + step) < height(at) - kSlopeShare * tall) at += step;
    return at;
  };
  Excursion excursion;
  excursion.before = side(-1);
  excursion.behind = side(1);
  const double nearer = std::max(height(excursion.before), height(excursion.behind));
  excursion.bytes = sign * (height(top) - nearer);
  excursion.hours = series.hours[excursion.behind] - series.hours[excursion.before];
  if (kShort * excursion.Points() > n) return std::nullopt;
  const Series rest = WithoutExcursion(series, excursion);
  double error = 0;
  for (size_t beside : {excursion.before, excursion.behind})
    error = std::max(error, std::sqrt(series.DifferenceVariance(beside, top)));
  const double least =
      std::max({kErrors * error, kScatters * Scatter(rest), kLineErrors * AroundLine(rest), kShare * series.Level()});
  if (height(top) - nearer <= least) return std::nullopt;
  return excursion;
}

}  // namespace

std::optional<Excursion> FindExcursion(const Series& series) {
  if (series.size() < kMinFitPoints) return std::nullopt;
  std::optional<Excursion> rise = Around(series, 1), fall = Around(series, -1);
  if (!rise.has_value() || !fall.has_value()) return rise.has_value() ? rise : fall;
  return rise->bytes >= -fall->bytes ? rise : fall;
}

Series WithoutExcursion(const Series& series, const Excursion& excursion) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < series.size(); i++) {
    if (i <= excursion.before || i >= excursion.behind) kept.push_back(i);
  }
  return series.At(kept);
}

}  // namespace cadastre
