#include "report/verdict.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "report/estimate.h"
#include "report/series_fit.h"
#include "report/series_odds.h"
#include "report/series_prepare.h"
#include "report/series_waves.h"

namespace cadastre {
namespace {

constexpr double kSure = 3;  // standard errors
constexpr double kLikely = 2.5, kSureFewPoints = 3.3;
// A change of less than this share of the level over the whole series is none; it can be excluded where two standard
// errors are less.
constexpr double kNoChangeShare = 0.05;
constexpr double kNothingBytes = 64 << 10;  // nobody looks for less
// A difference of criteria by which one shape is clearly better than another: odds of 3 to 1.
constexpr double kClearly = 2;
// Of the first growth: at most so much is levelling off, at least so much goes on.
constexpr double kLevelShare = 0.05, kSteadyShare = 0.5;
// What may hide behind the end of the growth, of the growth; and how many standard errors of it are not to be told from
// none (of 100 that are none 2 are more).
constexpr double kHiddenShare = 0.25, kNotSure = 2;
// A slope behind a start that is less than this share of it must be surer than others.
constexpr double kWeakShare = 0.3, kWeakSure = 1.5;

// Odds (series_odds) from which on the growth of a series is said to have ended, or to go on. A leak that is taken for
// a warm-up is found by nobody; a warm-up that is taken for a leak costs somebody an hour. Where the best shape says
// the same, and where it leaves it open and the odds alone must tell.
constexpr double kGoesOnDoubt = 0.03, kEndedDoubt = 0.1;
constexpr double kGoesOnDoubtAlone = 0.002, kEndedDoubtAlone = 0.1;
constexpr double kEndedOdds = 0.8, kGoesOnOdds = 0.5;
constexpr Shape kEndedShapes[] = {Shape::kCurve, Shape::kHinge, Shape::kStep};
constexpr Shape kGrowingShapes[] = {Shape::kLine, Shape::kLate, Shape::kCurveLine, Shape::kStepLine, Shape::kBend};

std::string Bytes(double bytes) { return FormatBytes(bytes); }
std::string Rate(double bytes_per_hour) {
  return absl::StrCat(bytes_per_hour < 0 ? "-" : "", FormatBytes(std::fabs(bytes_per_hour)), "/h");
}
std::string Hours(double hours) { return FormatDuration(hours * 3600); }

double SpanOf(const Series& series) { return series.hours.back() - series.hours.front(); }

double LevelOf(const Series& series) {
  double sum = 0;
  for (double bytes : series.bytes) sum += std::fabs(bytes);
  return sum / static_cast<double>(series.size());
}

class Judge {
 public:
  explicit Judge(const Series& series) : series_(series), span_(SpanOf(series)), level_(LevelOf(series)) {}

  Verdict Decide() {
    const Waves waves = FindWaves(series_);
    if (waves.are_waves()) {
      Verdict verdict = OfWaves(waves);
      // Waves over something that came to its end have a trend too.
      if (IsTrend(verdict) && series_.size() >= kMinFitPoints) {
        const GrowthOdds odds = OddsOf(series_);
        if (odds.ended + odds.none > kEndedDoubt) verdict = NotYet(series_.bytes.back() - series_.bytes.front());
      }
      return verdict;
    }
    return series_.size() < kMinFitPoints ? OfFewPoints() : OfShapes();
  }

 private:
  Verdict Steady(double rate, double error, const std::string& reason) const {
    Verdict verdict;
    verdict.kind = rate > 0 ? GrowthKind::kSteadyGrowth : GrowthKind::kShrinking;
    verdict.rate_bytes_per_hour = rate;
    verdict.rate_error = error;
    verdict.reason = reason;
    return verdict;
  }

  static Verdict Of(GrowthKind kind, const std::string& reason) {
    Verdict verdict;
    verdict.kind = kind;
    verdict.reason = reason;
    return verdict;
  }

  // No growth was found. `error`: standard error of the change over the whole series.
  Verdict WithoutGrowth(double change, double error) const {
    const double most = std::fabs(change) + 2 * error;
    const double enough = std::max({kNoChangeShare * level_, 2 * series_.weight_bytes, kNothingBytes});
    const std::string hidden =
        absl::StrCat("a change of ", Bytes(most), " in ", Hours(span_), " could hide in the errors");
    if (most <= enough) return Of(GrowthKind::kNoChange, hidden);
    // What of the error is sampling's goes with the root of the interval; the program's own restlessness takes time.
    const double sampling = std::sqrt(series_.DifferenceVariance(0, series_.size() - 1));
    const double wanted = enough / 2;
    std::string advice;
    if (series_.weight_bytes > 0 && sampling > 0.5 * error) {
      const double shorter = series_.weight_bytes * (wanted / sampling) * (wanted / sampling);
      advice = absl::StrCat("an interval of ", FormatInterval(RoundedInterval(shorter)), " would tell");
    } else {
      // The error of a slope falls with the time to the power of 1.5.
      advice = absl::StrCat("snapshots over ", Hours(span_ * std::pow(error / wanted, 2.0 / 3)), " would tell");
    }
    return Of(GrowthKind::kTooNoisy, absl::StrCat(hidden, "; ", advice));
  }

  // A power of two that is easy to type, at least 4 KiB.
  static uint64_t RoundedInterval(double bytes) {
    uint64_t interval = 4096;
    while (static_cast<double>(interval * 2) <= bytes) interval *= 2;
    return interval;
  }

  Verdict OfWaves(const Waves& waves) const {
    const size_t falls = waves.highs.size();
    std::string text =
        absl::StrCat(falls, falls == 1 ? " fall" : " falls", " of ", Bytes(waves.swing_bytes), " in ", Hours(span_));
    const Series means = CycleMeans(series_, waves);
    if (means.size() >= 2) {
      double rate, error;
      TrendOf(means, &rate, &error);
      const double change = rate * SpanOf(means);
      // Few waves hardly say how much waves differ: the averages must be far apart then.
      const bool few = means.size() < 5;
      const bool far = !few || std::fabs(change) > 0.25 * waves.swing_bytes;
      if (far && std::fabs(rate) > (few ? kSure + 1 : kSure) * error && std::fabs(change) > 0.02 * LevelOf(means)) {
        return Steady(rate, error, absl::StrCat(text, ", and the average of each wave goes on by ", Rate(rate)));
      }
      absl::StrAppend(&text, ", and the averages of ", means.size(), " waves have no trend");
    }
    // Waves that are not told apart well: over one wave or more, a line through a wave goes up or down by less than its
    // height.
    double rate, error;
    TrendOf(series_, &rate, &error);
    if (std::fabs(rate) * span_ - 2 * error * span_ > waves.swing_bytes)
      return Steady(rate, error, absl::StrCat(text, ", and ", Rate(rate), " through them"));
    return Of(GrowthKind::kSawtooth, text);
  }

  // Ordinary least squares; the error from the points' own errors or from their distance to the line, whichever is
  // more.
  static void TrendOf(const Series& means, double* rate, double* error) {
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

  // Three to five: two increments, about the middle.
  Verdict OfFewPoints() const {
    const size_t last = series_.size() - 1;
    size_t middle = 1;
    for (size_t i = 1; i < last; i++) {
      const double half = (series_.hours[0] + series_.hours[last]) / 2;
      if (std::fabs(series_.hours[i] - half) < std::fabs(series_.hours[middle] - half)) middle = i;
    }
    const double first = series_.bytes[middle] - series_.bytes[0], second = series_.bytes[last] - series_.bytes[middle];
    const double total = first + second;
    // What an exact profile moves by for no reason: a table that grows, a buffer.
    const double floor = std::max(4096.0, 0.001 * level_);
    auto error_of = [&](size_t i, size_t j) {
      return std::hypot(std::sqrt(series_.DifferenceVariance(i, j)), floor / kSureFewPoints);
    };
    const double first_error = error_of(0, middle), second_error = error_of(middle, last), error = error_of(0, last);
    const double first_hours = series_.hours[middle] - series_.hours[0];
    const double second_hours = series_.hours[last] - series_.hours[middle];
    const bool moved_first = std::fabs(first) > kSureFewPoints * first_error,
               moved_second = std::fabs(second) > kSureFewPoints * second_error;
    const bool moved = std::fabs(total) > kSureFewPoints * error;
    const std::string increments = absl::StrCat(Signed(first), ", then ", Signed(second));
    if (!moved_first && !moved_second && !moved) return WithoutGrowth(total, error);
    if (moved_first && moved_second && first * second < 0) {
      if (!moved || std::fabs(total) < 0.5 * std::min(std::fabs(first), std::fabs(second)))
        return Of(GrowthKind::kSawtooth, increments);
      return Of(GrowthKind::kTooNoisy, absl::StrCat(increments, ": another snapshot would tell"));
    }
    const double first_rate = first / first_hours, second_rate = second / second_hours;
    const double ratio = first_rate != 0 ? second_rate / first_rate : 0;
    const double ratio_error =
        first_rate != 0
            ? std::hypot(second_error / second_hours, ratio * first_error / first_hours) / std::fabs(first_rate)
            : 0;
    const double rate = total / span_, rate_error = error / span_;
    if (moved_first && std::fabs(second) + 2 * second_error < kSteadyShare * std::fabs(first_rate) * second_hours &&
        (!moved_second || std::fabs(ratio) <= kLevelShare)) {
      return Of(GrowthKind::kLevellingOff, increments);
    }
    const bool faster = first_rate == 0 || std::fabs(ratio) - 2 * ratio_error > 1 / kSteadyShare;
    if (moved_second && !moved_first && faster &&
        std::fabs(first) + 2 * first_error < kSteadyShare * std::fabs(second_rate) * first_hours) {
      return Of(GrowthKind::kStep, absl::StrCat(increments, ": another snapshot would tell whether it goes on"));
    }
    if (moved && ratio + 2 * ratio_error >= 1 && ratio > kSteadyShare) return Steady(rate, rate_error, increments);
    if (moved && moved_first && moved_second && ratio >= kSteadyShare)
      return Steady(second_rate, second_error / second_hours, increments);
    return Of(GrowthKind::kTooNoisy, absl::StrCat(increments, ": another snapshot would tell whether it goes on"));
  }

  static std::string Signed(double bytes) { return absl::StrCat(bytes < 0 ? "" : "+", Bytes(bytes)); }

  // Two judges: the shape that fits best, and the odds over all shapes. That growth has ended needs both, because one
  // shape may fit a leak well by chance; what the first leaves open the odds may still tell.
  Verdict OfShapes() const {
    const SeriesFits fits = FitShapes(series_);
    Verdict verdict = OfBestShape(fits);
    if (verdict.kind == GrowthKind::kNone) {
      const ShapeFit& line = fits.Of(Shape::kLine);
      return WithoutGrowth(line.slope * span_, line.slope_error * span_);
    }
    const bool ended = verdict.kind == GrowthKind::kLevellingOff, steady = IsTrend(verdict);
    if (!ended && !steady && verdict.kind != GrowthKind::kTooNoisy) return verdict;
    const GrowthOdds odds = OddsOf(series_);
    const double change = series_.bytes.back() - series_.bytes.front();
    auto has_ended = [&](double doubt) { return odds.goes_on < doubt && odds.ended > kEndedOdds; };
    auto goes_on = [&](double doubt) { return odds.ended + odds.none < doubt && odds.goes_on > kGoesOnOdds; };
    if (ended) return has_ended(kGoesOnDoubt) ? verdict : NotYet(change);
    if (steady) return goes_on(kEndedDoubt) ? verdict : NotYet(change);
    if (has_ended(kGoesOnDoubtAlone)) return Ended(BestOf(fits, kEndedShapes));
    return goes_on(kEndedDoubtAlone) ? GoesOn(BestOf(fits, kGrowingShapes)) : verdict;
  }

  static bool IsTrend(const Verdict& verdict) {
    return verdict.kind == GrowthKind::kSteadyGrowth || verdict.kind == GrowthKind::kShrinking;
  }

  static const ShapeFit& BestOf(const SeriesFits& fits, absl::Span<const Shape> shapes) {
    const ShapeFit* best = &fits.Of(shapes[0]);
    for (Shape shape : shapes) {
      if (fits.Of(shape).criterion < best->criterion) best = &fits.Of(shape);
    }
    return *best;
  }

  // kNone: nothing in it is sure.
  Verdict OfBestShape(const SeriesFits& fits) const {
    const ShapeFit& best = fits.best();
    const ShapeFit& line = fits.Of(Shape::kLine);
    const bool slopes = best.slope_error > 0 && std::fabs(best.slope) > best.sure * best.slope_error;
    const bool changes = best.change_error > 0 && std::fabs(best.change) > best.sure * best.change_error;
    switch (best.shape) {
      case Shape::kConstant:
      case Shape::kLine:
        // The simplest shape may have won by a hair over a line that is surely not flat.
        if (std::fabs(line.slope) > line.sure * line.slope_error) return OfLine(fits);
        break;
      case Shape::kSlowCurve:
        if (changes) return OfSlowCurve(fits, best);
        break;
      case Shape::kStep:
      case Shape::kHinge:
      case Shape::kCurve:
        if (changes) return OfBounded(fits, best);
        break;
      case Shape::kLate:
        if (slopes) return OfLate(fits, best);
        break;
      case Shape::kCurveLine:
      case Shape::kStepLine:
      case Shape::kBend:
        if (slopes || changes) return OfTwo(fits, best, slopes);
        break;
    }
    return {};
  }

  static double Better(const SeriesFits& fits, Shape a, Shape b) { return fits.Of(b).criterion - fits.Of(a).criterion; }

  Verdict NotYet(double change) const {
    return Of(GrowthKind::kTooNoisy,
              absl::StrCat(Signed(change), " in ", Hours(span_), ", and whether it goes on is not to be told yet"));
  }

  Verdict OfLine(const SeriesFits& fits) const {
    const ShapeFit& line = fits.Of(Shape::kLine);
    const bool plain = std::fabs(line.slope) > 2 * line.sure * line.slope_error;
    for (Shape ended : {Shape::kCurve, Shape::kHinge, Shape::kStep}) {
      if (Better(fits, Shape::kLine, ended) < (plain ? kClearly / 2 : kClearly)) return NotYet(line.slope * span_);
    }
    // A start-up that the first snapshots saw may be most of it: without them it must go on.
    ShapeFit start;
    start.shape = Shape::kStep;
    start.place = 1 + series_.size() / 12;
    start.restlessness = line.restlessness;
    double slope, error;
    const double samples = series_.weight_bytes > 0 ? std::max(1.0, level_ / series_.weight_bytes) : 1e12;
    if (!SlopeBehind(series_, start, &slope, &error) || slope * line.slope < 0 ||
        std::fabs(slope) < kLikely * (1 + 4 / std::sqrt(samples)) * error) {
      return NotYet(line.slope * span_);
    }
    return GoesOn(line);
  }

  Verdict OfSlowCurve(const SeriesFits& fits, const ShapeFit& best) const {
    const double left = std::exp(-span_ / best.tau_hours);  // of the slope at the beginning
    if (left > kSteadyShare || Better(fits, Shape::kSlowCurve, Shape::kLine) < kClearly) return OfLine(fits);
    return Of(GrowthKind::kTooNoisy, absl::StrCat("it slows down and has not come to its end: snapshots over ",
                                                  Hours(3 * best.tau_hours), " would tell"));
  }

  Verdict GoesOn(const ShapeFit& fit) const {
    if (std::fabs(fit.slope) <= kSure * fit.slope_error) return NotYet(series_.bytes.back() - series_.bytes.front());
    if (fit.shape == Shape::kLine) {
      return Steady(fit.slope, fit.slope_error,
                    absl::StrCat(Rate(fit.slope), " all along, ", Signed(fit.slope * span_), " in ", Hours(span_)));
    }
    if (fit.shape == Shape::kLate) {
      return Steady(fit.slope, fit.slope_error,
                    absl::StrCat(Rate(fit.slope), " for the last ",
                                 Hours(series_.hours.back() - series_.hours[fit.place]), ", level before"));
    }
    const char* before = fit.shape == Shape::kStepLine    ? " beside a jump of "
                         : fit.shape == Shape::kCurveLine ? " behind a start of "
                                                          : " after ";
    return Steady(fit.slope, fit.slope_error, absl::StrCat(Rate(fit.slope), " in the end", before, Signed(fit.change)));
  }

  Verdict Ended(const ShapeFit& fit) const {
    const double began = series_.hours[0];
    if (fit.shape == Shape::kCurve) {
      return Of(GrowthKind::kLevellingOff, absl::StrCat(Signed(fit.change), ", most of it in the first ",
                                                        Hours(2 * fit.tau_hours), ", level since"));
    }
    const double at = series_.hours[fit.place], level = series_.hours.back() - at;
    if (fit.shape == Shape::kHinge) {
      return Of(GrowthKind::kLevellingOff,
                absl::StrCat(Signed(fit.change), " in the first ", Hours(at - began), ", level for ", Hours(level)));
    }
    const std::string jump = absl::StrCat(Signed(fit.change), " within ", Hours(at - series_.hours[fit.place - 1]));
    if (fit.place == 1) return Of(GrowthKind::kLevellingOff, absl::StrCat(jump, " of the first snapshot, level since"));
    if (fit.place + 1 == series_.size())
      return Of(GrowthKind::kStep, absl::StrCat(jump, " of the last snapshot: another would tell whether it goes on"));
    return Of(GrowthKind::kStep, absl::StrCat(jump, ", ", Hours(level), " before the end; level before and since"));
  }

  // Is what follows level, as far as can be seen? Its slope is not sure, and what may hide in the error by the end is
  // little beside what it grew by before.
  bool IsLevelBehind(const ShapeFit& best) const {
    double slope, error;
    if (!SlopeBehind(series_, best, &slope, &error)) return false;
    if (slope * best.change > 0 && std::fabs(slope) > kSure * error) return false;  // little, but surely there
    const double hours = best.shape == Shape::kCurve ? span_ : series_.hours.back() - series_.hours[best.place];
    const double share = hours / best.change;  // its sign makes growth that goes on positive
    const double since = slope * share;
    error *= std::fabs(share);
    if (std::fabs(since) + 2 * error < kLevelShare) return true;
    return since < kNotSure * error && error < kHiddenShare && since + error < 2 * kHiddenShare;
  }

  Verdict OfBounded(const SeriesFits& fits, const ShapeFit& best) const {
    // A line that serves nearly as well means growth whose end is not to be seen.
    const ShapeFit& line = fits.Of(Shape::kLine);
    if (Better(fits, best.shape, Shape::kLine) < 2 * kClearly) return NotYet(line.slope * span_);
    for (Shape growing : {Shape::kCurveLine, Shape::kBend, Shape::kStepLine, Shape::kLate}) {
      const ShapeFit& other = fits.Of(growing);
      const bool goes_on = other.slope * best.change > 0 && std::fabs(other.slope) > kLikely * other.slope_error &&
                           std::fabs(other.slope) * span_ > 2 * kLevelShare * std::fabs(best.change);
      if (goes_on && Better(fits, best.shape, growing) < 1.5 * kClearly) return NotYet(best.change);
    }
    const bool interior_step = best.shape == Shape::kStep && best.place > 1;
    return interior_step || IsLevelBehind(best) ? Ended(best) : NotYet(best.change);
  }

  Verdict OfLate(const SeriesFits& fits, const ShapeFit& best) const {
    const double growing = series_.hours.back() - series_.hours[best.place];
    const size_t points = series_.size() - best.place;
    if (Better(fits, Shape::kLate, Shape::kStep) < kClearly || points < 4) {
      return Of(points < 4 ? GrowthKind::kStep : GrowthKind::kTooNoisy,
                absl::StrCat(Signed(best.slope * growing), " in the last ", Hours(growing),
                             ": later snapshots would tell whether it goes on"));
    }
    return GoesOn(best);
  }

  // Something at first, and a slope at the end.
  Verdict OfTwo(const SeriesFits& fits, const ShapeFit& best, bool slopes) const {
    const double slope_change = best.slope * span_;
    if (!slopes) {
      const ShapeFit* bounded = &fits.Of(Shape::kStep);
      for (Shape shape : {Shape::kHinge, Shape::kCurve}) {
        if (fits.Of(shape).criterion < bounded->criterion) bounded = &fits.Of(shape);
      }
      return OfBounded(fits, *bounded);
    }
    for (Shape ended : {Shape::kCurve, Shape::kHinge, Shape::kStep}) {
      if (Better(fits, best.shape, ended) < kClearly) return NotYet(best.change + slope_change);
    }
    // A slope that is hardly there: a curve that comes to its end in a way of its own looks so.
    const bool weak = std::fabs(slope_change) < kWeakShare * std::fabs(best.change);
    if (weak && best.change * best.slope > 0 && std::fabs(best.slope) < kWeakSure * best.sure * best.slope_error)
      return NotYet(best.change + slope_change);
    // Back from a start that took more than is needed: that is not a trend either.
    if (best.shape != Shape::kStepLine && weak && best.change * best.slope < 0)
      return Of(GrowthKind::kLevellingOff,
                absl::StrCat(Signed(best.change), " at first, ", Rate(best.slope), " since"));
    // Down and up again, or up and down: half a wave looks so.
    if (best.change * best.slope < 0 && std::fabs(best.change) > kWeakShare * std::fabs(slope_change)) {
      return Of(GrowthKind::kTooNoisy, absl::StrCat(Signed(best.change), " beside ", Rate(best.slope),
                                                    ": later snapshots would tell which of them stays"));
    }
    return GoesOn(best);
  }

  const Series& series_;
  double span_, level_;
};

}  // namespace

double Series::DifferenceVariance(size_t i, size_t j) const {
  return std::max(0.0, Covariance(i, i) + Covariance(j, j) - 2 * Covariance(i, j));
}

const char* GrowthKindName(GrowthKind kind) {
  static constexpr const char* kNames[] = {"",         "steady growth", "levelling off", "step",
                                           "sawtooth", "no change",     "too noisy",     "shrinking"};
  return kNames[static_cast<int>(kind)];
}

Verdict JudgeSeries(const Series& series) {
  if (series.size() < 3 || !(SpanOf(series) > 0)) return {};
  const Series judged = PrepareSeries(series);
  return Judge(judged).Decide();
}

}  // namespace cadastre
