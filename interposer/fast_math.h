// Natural logarithm and 1-exp(-x) without libm (the library needs libc alone).
//
// Accuracy: relative error below 4e-16 * 8 over the ranges used (checked against libm in
// tests/unit/interposer/fast_math_test.cc). Thread- and signal-safety: pure.
#ifndef CADASTRE_INTERPOSER_FAST_MATH_H_
#define CADASTRE_INTERPOSER_FAST_MATH_H_

#include <stdint.h>
#include <string.h>

namespace cadastre {

// While one lives, floating-point arithmetic is as a program starts with it: it rounds to nearest, a trap that the
// program has asked for does not come, and the flags that it may ask for afterwards (fenv.h) stay as they are.
class OwnFloatingPoint {
 public:
  OwnFloatingPoint() {
    constexpr uint32_t kAsAtStart = 0x1f80;  // MXCSR, System V ABI, AMD64 supplement, 3.4.1
    asm volatile("stmxcsr %0\n\tldmxcsr %1" : "=m"(programs_) : "m"(kAsAtStart) : "memory");
  }
  ~OwnFloatingPoint() { asm volatile("ldmxcsr %0" : : "m"(programs_) : "memory"); }
  OwnFloatingPoint(const OwnFloatingPoint&) = delete;
  OwnFloatingPoint& operator=(const OwnFloatingPoint&) = delete;

 private:
  uint32_t programs_;
};

inline constexpr double kLn2High =
    6.93147180369123816490e-01;  // ln 2 in two parts, so that k*high is exact for small k
inline constexpr double kLn2Low = 1.90821492927058770002e-10;

// ln(x) for normal x > 0. x = m * 2^k with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh((m-1)/(m+1)); |s| <= 0.1716, so
// the term s^21/21 is below 1e-17.
inline double FastLog(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof(bits));
  int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  bits = (bits & 0x000fffffffffffffull) | 0x3ff0000000000000ull;
  double m;
  memcpy(&m, &bits, sizeof(m));
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent++;
  }
  double s = (m - 1.0) / (m + 1.0);
  double z = s * s;
  double sum = 0;
  for (int n = 21; n >= 3; n -= 2) sum = (sum + 1.0 / n) * z;
  return exponent * kLn2High + (exponent * kLn2Low + (2.0 * s + 2.0 * s * sum));
}

// 1 - exp(-x) for x >= 0, accurate for tiny x too.
inline double OneMinusExpNegative(double x) {
  if (x > 40.0) return 1.0;  // exp(-40) = 4e-18: below half an ulp of 1
  if (x < 0.5) {
    // Alternating series x - x^2/2! + x^3/3! ...; at 0.5 the 16th term is 0.5^16/16! < 1e-18.
    double sum = 0;
    for (int n = 16; n >= 2; n--) sum = (1.0 - sum) * x / n;
    return x * (1.0 - sum);
  }
  // exp(-x) = 2^-k * exp(-r), |r| <= ln2/2; Taylor to r^14/14! < 1e-17.
  int k = static_cast<int>(x * 1.4426950408889634 + 0.5);
  double r = (x - k * kLn2High) - k * kLn2Low;
  double e = 1.0;
  for (int n = 15; n >= 1; n--) e = 1.0 - e * r / n;
  uint64_t bits = static_cast<uint64_t>(1023 - k) << 52;
  double scale;
  memcpy(&scale, &bits, sizeof(scale));
  return 1.0 - e * scale;
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_FAST_MATH_H_
