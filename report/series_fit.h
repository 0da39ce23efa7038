// Fits of simple shapes to a series whose points have errors that belong together.
//
// A shape is a sum of columns (1, time, a step, a curve...). Fitted by generalised least squares with the covariance
// V = E + s² 1: E is the error of measurement (sampling), s² the restlessness of the program, which is the same at each
// point and is estimated for each shape by maximum likelihood. Shapes are compared by Schwarz's criterion (BIC):
//   -2 log L + parameters * log(points), with 2 parameters for a place in time that was searched for.
// Shapes that do not fall back to where they began: see series_waves.h for those. Units: hours, bytes. Errors: none;
// series have 6 to kMaxFitPoints points. Thread-safety: pure.
//
// Example: SeriesFits fits = FitShapes(series); if (fits.best().shape == Shape::kLine) ...
#ifndef CADASTRE_REPORT_SERIES_FIT_H_
#define CADASTRE_REPORT_SERIES_FIT_H_

#include <cstddef>
#include <vector>

#include "report/verdict.h"

namespace cadastre {

inline constexpr size_t kMinFitPoints = 6, kMaxFitPoints = 60;

enum class Shape {
  kConstant,
  kLine,
  kStep,       // two levels
  kCurve,      // rises fast, then ever more slowly: a + b (1 - exp(-t/tau)), and has come to its end
  kHinge,      // a line that becomes flat, and stays so for a fifth of the time at least
  kLate,       // flat, then a line
  kCurveLine,  // a curve and a line: start-up, then growth
  kStepLine,   // a step and a line
  kBend,       // two slopes
  kSlowCurve,  // a curve that has not come to its end
  kTwoSteps,   // three levels, each of two points at least
};
inline constexpr size_t kShapes = static_cast<size_t>(Shape::kTwoSteps) + 1;

struct ShapeFit {
  Shape shape = Shape::kConstant;
  double criterion = 0;     // the smaller the better
  size_t place = 0;         // kStep, kStepLine: the first point behind; kHinge, kLate, kBend: where it bends
  size_t second_place = 0;  // kTwoSteps: the first point behind the second, `place` being that behind the first
  double tau_hours = 0;     // kCurve, kCurveLine
  double change = 0;        // height of the step or of the curve, bytes
  double change_error = 0;  // its standard error
  double slope = 0;         // at the end of the series, bytes an hour; kCurve: none
  double slope_error = 0;   // its standard error
  double first_slope = 0;   // kBend: before the bend
  double second_change = 0, second_error = 0;  // kTwoSteps: height of the second step
  double restlessness = 0;                     // s, bytes
  // How many standard errors are as much as 3 are where errors are known: more where they come from few points.
  double sure = 3;
};

struct SeriesFits {
  std::vector<ShapeFit> fits;  // one for each shape, in the order of Shape
  const ShapeFit& Of(Shape shape) const { return fits[static_cast<size_t>(shape)]; }
  const ShapeFit& best() const;
};

// What the restlessness may be: from nearly nothing to all that there is.
std::vector<double> RestlessnessGrid(const Series& series);

SeriesFits FitShapes(const Series& series);

// The slope that is left, and its error, if one may follow `fit`: beside a curve, behind a hinge or a step. false: it
// is not to be told.
bool SlopeBehind(const Series& series, const ShapeFit& fit, double* slope, double* error);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SERIES_FIT_H_
