#include "report/whitened_series.h"

#include <algorithm>
#include <cmath>

namespace cadastre {
namespace {

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
  return sum;
}

// The inverse of a matrix from its root, row by row.
std::vector<double> InverseFromRoot(const std::vector<double>& root, size_t p) {
  std::vector<std::vector<double>> columns;  // of the inverse of the root
  for (size_t b = 0; b < p; b++) {
    std::vector<double> unit(p);
    unit[b] = 1;
    columns.push_back(SolveLower(root, p, unit));
  }
  std::vector<double> inverse(p * p);
  for (size_t a = 0; a < p; a++) {
    for (size_t b = 0; b < p; b++) inverse[a * p + b] = Dot(columns[a], columns[b]);
  }
  return inverse;
}

std::vector<double> Product(const std::vector<double>& matrix, const std::vector<double>& column) {
  const size_t p = column.size();
  std::vector<double> product(p);
  for (size_t a = 0; a < p; a++) {
    for (size_t b = 0; b < p; b++) product[a] += matrix[a * p + b] * column[b];
  }
  return product;
}

}  // namespace

bool Cholesky(std::vector<double>* matrix, size_t n) {
  std::vector<double>& m = *matrix;
  for (size_t j = 0; j < n; j++) {
    for (size_t i = j; i < n; i++) {
      double sum = m[i * n + j];
      for (size_t k = 0; k < j; k++) sum -= m[i * n + k] * m[j * n + k];
      if (i == j) {
        if (!(sum > 0)) return false;
        m[j * n + j] = std::sqrt(sum);
      } else {
        m[i * n + j] = sum / m[j * n + j];
      }
    }
  }
  return true;
}

std::vector<double> SolveLower(const std::vector<double>& lower, size_t n, std::vector<double> column) {
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) column[i] -= lower[i * n + k] * column[k];
    column[i] /= lower[i * n + i];
  }
  return column;
}

WhitenedSeries::WhitenedSeries(const Series& series, double restlessness)
    : n_(series.size()), lower_(series.covariance) {
  for (size_t i = 0; i < n_; i++) lower_[i * n_ + i] += restlessness * restlessness;
  valid_ = Cholesky(&lower_, n_);
  if (!valid_) return;
  bytes_ = SolveLower(lower_, n_, series.bytes);
  for (size_t i = 0; i < n_; i++) log_determinant_ += 2 * std::log(lower_[i * n_ + i]);
}

WhitenedSeries::NormalEquations WhitenedSeries::NormalOf(const Columns& columns) const {
  const size_t p = columns.size();
  NormalEquations normal{std::vector<double>(p * p), std::vector<double>(p)};
  for (size_t a = 0; a < p; a++) {
    normal.right[a] = Dot(*columns[a], bytes_);
    for (size_t b = 0; b < p; b++) normal.matrix[a * p + b] = Dot(*columns[a], *columns[b]);
  }
  return normal;
}

WhitenedSeries::Solution WhitenedSeries::Solve(const Columns& columns) const {
  const size_t p = columns.size();
  auto [normal, right] = NormalOf(columns);
  // Columns differ in scale: each is divided by its length, and two that say the same are no shape.
  std::vector<double> length(p);
  for (size_t a = 0; a < p; a++) length[a] = std::sqrt(normal[a * p + a]);
  for (size_t a = 0; a < p; a++) {
    if (!(length[a] > 0)) return {};
    right[a] /= length[a];
  }
  for (size_t a = 0; a < p; a++) {
    for (size_t b = 0; b < p; b++) normal[a * p + b] /= length[a] * length[b];
  }
  if (!Cholesky(&normal, p)) return {};
  for (size_t a = 0; a < p; a++) {
    if (normal[a * p + a] < 1e-5) return {};
  }
  Solution solution;
  solution.covariance = InverseFromRoot(normal, p);
  solution.values = Product(solution.covariance, right);
  for (size_t a = 0; a < p; a++) {
    solution.values[a] /= length[a];
    for (size_t b = 0; b < p; b++) solution.covariance[a * p + b] /= length[a] * length[b];
  }
  double squares = 0;
  for (size_t i = 0; i < n_; i++) {
    double rest = bytes_[i];
    for (size_t a = 0; a < p; a++) rest -= solution.values[a] * (*columns[a])[i];
    squares += rest * rest;
  }
  solution.squares = squares;
  solution.minus_two_log_likelihood = squares + log_determinant_;
  return solution;
}

WhitenedSeries::Posterior WhitenedSeries::Weigh(const Columns& columns, double scale) const {
  const size_t p = columns.size();
  auto [normal, right] = NormalOf(columns);
  for (size_t a = 1; a < p; a++) normal[a * p + a] += 1 / (scale * scale);
  if (!Cholesky(&normal, p)) return {};
  Posterior posterior;
  posterior.covariance = InverseFromRoot(normal, p);
  posterior.values = Product(posterior.covariance, right);
  double log_root = 0;
  for (size_t a = 0; a < p; a++) log_root += std::log(normal[a * p + a]);
  posterior.log_evidence = Dot(right, posterior.values) / 2 - Dot(bytes_, bytes_) / 2 - log_determinant_ / 2 -
                           log_root - static_cast<double>(p - 1) * std::log(scale);
  return posterior;
}

}  // namespace cadastre
