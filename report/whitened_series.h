// A series and the columns of a shape, divided by the root of the covariance of the errors: there least squares are
// ordinary.
//
// Thread-safety: pure. Errors: valid() is false where the covariance is none.
//
// Example: const WhitenedSeries white(series, restlessness); white.Solve({&one, &time}).values;
#ifndef CADASTRE_REPORT_WHITENED_SERIES_H_
#define CADASTRE_REPORT_WHITENED_SERIES_H_

#include <cstddef>
#include <limits>
#include <vector>

#include "report/verdict.h"

namespace cadastre {

// Lower triangle of the root of a symmetric positive matrix, in place; false: it is none.
bool Cholesky(std::vector<double>* matrix, size_t n);

// x of lower x = column.
std::vector<double> SolveLower(const std::vector<double>& lower, size_t n, std::vector<double> column);

class WhitenedSeries {
 public:
  // `restlessness`: standard deviation of each point that is not of measurement.
  WhitenedSeries(const Series& series, double restlessness);

  bool valid() const { return valid_; }
  std::vector<double> Column(const std::vector<double>& column) const { return SolveLower(lower_, n_, column); }

  struct Solution {
    double minus_two_log_likelihood = std::numeric_limits<double>::infinity();
    double squares = 0;                      // of what is left
    std::vector<double> values, covariance;  // of the parameters
  };
  using Columns = std::vector<const std::vector<double>*>;  // whitened

  // The combination of the columns that is nearest to the series. No values: columns that say the same.
  Solution Solve(const Columns& columns) const;

  // What is known of the parameters where the first may be anything and each other one is about 0 with a standard
  // deviation of `scale` before the series is seen: p(series) = integral of likelihood times that prior.
  struct Posterior {
    double log_evidence = -std::numeric_limits<double>::infinity();
    std::vector<double> values, covariance;
  };
  Posterior Weigh(const Columns& columns, double scale) const;

 private:
  struct NormalEquations {
    std::vector<double> matrix, right;
  };
  NormalEquations NormalOf(const Columns& columns) const;

  size_t n_;
  std::vector<double> lower_, bytes_;
  double log_determinant_ = 0;
  bool valid_ = false;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_WHITENED_SERIES_H_
