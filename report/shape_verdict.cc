#include "report/shape_verdict.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "report/series_fit.h"
#include "report/series_odds.h"
#include "report/verdict_words.h"

namespace cadastre {
namespace {

constexpr double kSure = 3, kLikely = 2.5;  // standard errors
// A difference of criteria by which one shape is clearly better than another: odds of 3 to 1.
constexpr double kClearly = 2;
// Of the first growth: at most so much is levelling off.
constexpr double kLevelShare = 0.05;
// A slope at the end that is at least this share of that at the beginning goes on: nobody can tell how it ends.
constexpr double kHardlySlowerShare = 0.65;
// What may hide behind the end of the growth, of the growth; and how many standard errors of it are not to be told from
// none (of 100 that are none 2 are more).
constexpr double kHiddenShare = 0.25, kNotSure = 2;
// A slope behind a start that is less than this share of it must be surer than others.
constexpr double kWeakShare = 0.3, kWeakSure = 1.5;

// Odds (series_odds) from which on the growth of a series is said to have ended, or to go on. A leak that is taken for
// a warm-up is found by nobody; a warm-up that is taken for a leak costs somebody an hour. Where the best shape says
// the same, and where it leaves it open and the odds alone must tell.
constexpr double kGoesOnDoubt = 0.05, kEndedDoubt = 0.1;
constexpr double kGoesOnDoubtContested = 0.02;  // a shape that goes on is nearly as good
constexpr double kGoesOnDoubtAlone = 0.01, kEndedDoubtAlone = 0.02;
constexpr double kEndedOdds = 0.5, kGoesOnOdds = 0.4;
constexpr Shape kEndedShapes[] = {Shape::kCurve, Shape::kHinge, Shape::kStep};
constexpr Shape kGrowingShapes[] = {Shape::kLine, Shape::kLate, Shape::kCurveLine, Shape::kStepLine, Shape::kBend};

class ShapeJudge {
 public:
  explicit ShapeJudge(const Series& series) : series_(series), span_(series.Span()), level_(series.Level()) {}

  // Two judges: the shape that fits best, and the odds over all shapes. That growth has ended needs both, because one
  // shape may fit a leak well by chance; what the first leaves open the odds may still tell.
  Verdict Decide() const {
    const SeriesFits fits = FitShapes(series_);
    Verdict verdict = OfBestShape(fits);
    if (verdict.kind == GrowthKind::kNone) {
      const ShapeFit& line = fits.Of(Shape::kLine);
      return WithoutGrowth(series_, line.slope * span_, line.slope_error * span_);
    }
    const bool ended = verdict.kind == GrowthKind::kLevellingOff, steady = IsTrend(verdict);
    if (!ended && !steady && verdict.kind != GrowthKind::kTooNoisy) return verdict;
    const GrowthOdds odds = OddsOf(series_);
    const double change = series_.bytes.back() - series_.bytes.front();
    auto has_ended = [&](double doubt) { return odds.goes_on < doubt && odds.ended > kEndedOdds; };
    auto goes_on = [&](double doubt) { return odds.ended + odds.none < doubt && odds.goes_on > kGoesOnOdds; };
    const ShapeFit& best = fits.best();
    // Little beside what came before it, and plainly there: such a slope is not among the odds of what goes on.
    const bool plain = IsBesideStart(best.shape) && std::fabs(best.slope) > 2 * best.sure * best.slope_error;
    if (ended)
      return has_ended(IsContested(fits, change) ? kGoesOnDoubtContested : kGoesOnDoubt) ? verdict
                                                                                         : NotToBeTold(series_, change);
    if (steady) return goes_on(kEndedDoubt) || plain ? verdict : NotToBeTold(series_, change);
    if (has_ended(kGoesOnDoubtAlone)) return Ended(BestOf(fits, kEndedShapes));
    return goes_on(kEndedDoubtAlone) ? GoesOn(BestOf(fits, kGrowingShapes)) : verdict;
  }

  // Whether growth that goes on the same way explains the series nearly as well.
  static bool IsContested(const SeriesFits& fits, double change) {
    const ShapeFit& growing = BestOf(fits, kGrowingShapes);
    return growing.slope * change > 0 && growing.criterion - fits.best().criterion < kClearly;
  }

  static bool IsBesideStart(Shape shape) {
    return shape == Shape::kCurveLine || shape == Shape::kStepLine || shape == Shape::kBend;
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
      case Shape::kTwoSteps:
        if (changes) return OfTwoSteps(fits, best);
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

  Verdict OfLine(const SeriesFits& fits) const {
    const ShapeFit& line = fits.Of(Shape::kLine);
    const bool plain = std::fabs(line.slope) > 2 * line.sure * line.slope_error;
    for (Shape ended : {Shape::kCurve, Shape::kHinge, Shape::kStep}) {
      if (Better(fits, Shape::kLine, ended) < (plain ? kClearly / 2 : kClearly))
        return NotToBeTold(series_, line.slope * span_);
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
      return NotToBeTold(series_, line.slope * span_);
    }
    return GoesOn(line);
  }

  Verdict OfSlowCurve(const SeriesFits& fits, const ShapeFit& best) const {
    const double left = std::exp(-span_ / best.tau_hours);  // of the slope at the beginning
    if (left > kHardlySlowerShare || Better(fits, Shape::kSlowCurve, Shape::kLine) < kClearly) return OfLine(fits);
    return SlowsDown(best);
  }

  static Verdict SlowsDown(const ShapeFit& curve) {
    return MakeVerdict(GrowthKind::kTooNoisy, absl::StrCat("it slows down and has not come to its end: snapshots over ",
                                                           HoursText(3 * curve.tau_hours), " would tell"));
  }

  Verdict GoesOn(const ShapeFit& fit) const {
    if (std::fabs(fit.slope) <= kSure * fit.slope_error)
      return NotToBeTold(series_, series_.bytes.back() - series_.bytes.front());
    if (fit.shape == Shape::kLine) {
      return MakeTrend(
          fit.slope, fit.slope_error,
          absl::StrCat(RateText(fit.slope), " all along, ", SignedText(fit.slope * span_), " in ", HoursText(span_)));
    }
    if (fit.shape == Shape::kLate) {
      return MakeTrend(fit.slope, fit.slope_error,
                       absl::StrCat(RateText(fit.slope), " for the last ",
                                    HoursText(series_.hours.back() - series_.hours[fit.place]), ", level before"));
    }
    const char* before = fit.shape == Shape::kStepLine    ? " beside a jump of "
                         : fit.shape == Shape::kCurveLine ? " behind a start of "
                                                          : " after ";
    return MakeTrend(fit.slope, fit.slope_error,
                     absl::StrCat(RateText(fit.slope), " in the end", before, SignedText(fit.change)));
  }

  Verdict Ended(const ShapeFit& fit) const {
    const double began = series_.hours[0];
    if (fit.shape == Shape::kCurve) {
      return MakeVerdict(GrowthKind::kLevellingOff, absl::StrCat(SignedText(fit.change), ", most of it in the first ",
                                                                 HoursText(2 * fit.tau_hours), ", level since"));
    }
    const double at = series_.hours[fit.place], level = series_.hours.back() - at;
    if (fit.shape == Shape::kHinge) {
      return MakeVerdict(GrowthKind::kLevellingOff,
                         absl::StrCat(SignedText(fit.change), " in the first ", HoursText(at - began), ", level for ",
                                      HoursText(level)));
    }
    const std::string jump =
        absl::StrCat(SignedText(fit.change), " within ", HoursText(at - series_.hours[fit.place - 1]));
    if (fit.place == 1)
      return MakeVerdict(GrowthKind::kLevellingOff, absl::StrCat(jump, " of the first snapshot, level since"));
    if (fit.place + 1 == series_.size())
      return MakeVerdict(GrowthKind::kStep,
                         absl::StrCat(jump, " of the last snapshot: another would tell whether it goes on"));
    return MakeVerdict(GrowthKind::kStep,
                       absl::StrCat(jump, ", ", HoursText(level), " before the end; level before and since"));
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

  // A shape with a slope at its end that is nearly as good as one without.
  bool MayGoOn(const SeriesFits& fits, const ShapeFit& best, double change) const {
    for (Shape growing : {Shape::kCurveLine, Shape::kBend, Shape::kStepLine, Shape::kLate}) {
      const ShapeFit& other = fits.Of(growing);
      const bool goes_on = other.slope * change > 0 && std::fabs(other.slope) > kLikely * other.slope_error &&
                           std::fabs(other.slope) * span_ > 2 * kLevelShare * std::fabs(change);
      if (goes_on && Better(fits, best.shape, growing) < 1.5 * kClearly) return true;
    }
    return false;
  }

  Verdict OfBounded(const SeriesFits& fits, const ShapeFit& best) const {
    // A line that serves nearly as well means growth whose end is not to be seen.
    const ShapeFit& line = fits.Of(Shape::kLine);
    if (Better(fits, best.shape, Shape::kLine) < 2 * kClearly) return NotToBeTold(series_, line.slope * span_);
    if (MayGoOn(fits, best, best.change)) return NotToBeTold(series_, best.change);
    const bool interior_step = best.shape == Shape::kStep && best.place > 1;
    return interior_step || IsLevelBehind(best) ? Ended(best) : NotToBeTold(series_, best.change);
  }

  Verdict OfTwoSteps(const SeriesFits& fits, const ShapeFit& best) const {
    const double change = best.change + best.second_change;
    if (std::fabs(best.second_change) <= best.sure * best.second_error) return OfBounded(fits, fits.Of(Shape::kStep));
    if (Better(fits, Shape::kTwoSteps, Shape::kLine) < 2 * kClearly || MayGoOn(fits, best, change))
      return NotToBeTold(series_, change);
    return MakeVerdict(GrowthKind::kStep,
                       absl::StrCat("two jumps, ", SignedText(best.change), " and ", SignedText(best.second_change),
                                    ", ", HoursText(series_.hours.back() - series_.hours[best.second_place]),
                                    " before the end; level between and since"));
  }

  Verdict OfLate(const SeriesFits& fits, const ShapeFit& best) const {
    const double growing = series_.hours.back() - series_.hours[best.place];
    const size_t points = series_.size() - best.place;
    if (Better(fits, Shape::kLate, Shape::kStep) < kClearly || points < 4) {
      return MakeVerdict(points < 4 ? GrowthKind::kStep : GrowthKind::kTooNoisy,
                         absl::StrCat(SignedText(best.slope * growing), " in the last ", HoursText(growing),
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
    if (Better(fits, best.shape, Shape::kSlowCurve) < kClearly) return SlowsDown(fits.Of(Shape::kSlowCurve));
    for (Shape ended : {Shape::kCurve, Shape::kHinge, Shape::kStep}) {
      if (Better(fits, best.shape, ended) < kClearly) return NotToBeTold(series_, best.change + slope_change);
    }
    // A slope that is hardly there: a curve that comes to its end in a way of its own looks so.
    const bool weak = std::fabs(slope_change) < kWeakShare * std::fabs(best.change);
    if (weak && best.change * best.slope > 0 && std::fabs(best.slope) < kWeakSure * best.sure * best.slope_error)
      return NotToBeTold(series_, best.change + slope_change);
    // Back from a start that took more than is needed: that is not a trend either.
    if (best.shape != Shape::kStepLine && weak && best.change * best.slope < 0)
      return MakeVerdict(GrowthKind::kLevellingOff,
                         absl::StrCat(SignedText(best.change), " at first, ", RateText(best.slope), " since"));
    // Down and up again, or up and down: half a wave looks so.
    if (best.change * best.slope < 0 && std::fabs(best.change) > kWeakShare * std::fabs(slope_change)) {
      return MakeVerdict(GrowthKind::kTooNoisy, absl::StrCat(SignedText(best.change), " beside ", RateText(best.slope),
                                                             ": later snapshots would tell which of them stays"));
    }
    return GoesOn(best);
  }

  const Series& series_;
  double span_, level_;
};

}  // namespace

Verdict JudgeShapes(const Series& series) { return ShapeJudge(series).Decide(); }

bool OddsAllowTrend(const Series& series) {
  const GrowthOdds odds = OddsOf(series);
  return odds.ended + odds.none <= kEndedDoubt;
}

}  // namespace cadastre
