// Estimates: sums of sampled weights with their standard error, and the one place where numbers become text.
//
// Units: bytes (powers of 1024 in text), blocks, seconds where the name says so.
// Derivation. The interposer draws exponential gaps of mean R bytes, so a block of S bytes is sampled with probability
//   p = 1 - exp(-S/R), independently of every other block (the gap has no memory), and stands for w = S/p bytes.
//   Horvitz-Thompson: sum(w) over the samples is an unbiased estimate of the bytes, and
//   sum((1-p)/p^2 * S^2) = sum(w(w-S)) is an unbiased estimate of its variance.
//   In blocks each sample stands for c = w/S of them; the same with S=1 gives sum(c(c-1)).
//   In exact mode p = 1, w = S, c = 1: the variance is 0 and no error is printed.
//   Sums over disjoint sets of blocks are independent, so variances add.
// Thread-safety: plain values.
//
// Example:
//   Tally tally;
//   tally.AddLive(64, 524320, false);
//   FormatBytes(2.02 * kGiB, 0.03 * kGiB)  →  "2.02 GiB ±0.03"
#ifndef CADASTRE_REPORT_ESTIMATE_H_
#define CADASTRE_REPORT_ESTIMATE_H_

#include <cstdint>
#include <string>

namespace cadastre {

inline constexpr double kKiB = 1024.0, kMiB = 1024.0 * kKiB, kGiB = 1024.0 * kMiB;

struct Estimate {
  double value = 0;
  double variance = 0;
  double StandardError() const;
};

// What one row adds up. Byte counts are integers, so that rows sum to the total exactly.
struct Tally {
  uint64_t live_bytes = 0;
  double live_variance = 0;
  double live_count = 0, live_count_variance = 0;
  uint64_t live_samples = 0;
  uint64_t allocated_bytes = 0;
  double allocated_variance = 0;
  double allocated_count = 0;
  uint64_t samples = 0;  // recorded, freed ones included
  uint64_t peak_bytes = 0;
  double peak_variance = 0;
  uint64_t old_bytes = 0;
  double old_variance = 0;
  uint64_t mapped_bytes = 0;  // of mappings: committed, not sampled

  // One live block. `old` = it is older than the reader's threshold.
  void AddLive(uint64_t size_bytes, uint64_t weight_bytes, bool old);
  void Add(const Tally& other);
};

enum class Metric { kLive, kAllocated, kCount, kPeak, kOld, kMapped };
Estimate EstimateOf(const Tally& tally, Metric metric);

// Standard error of part/total in percent, where `part` is contained in `total`: the delta method with cov(part,total)
// = var(part).
double ShareErrorPercent(const Estimate& part, const Estimate& total);

// ---- Text
// ------------------------------------------------------------------------------------------------------------ The
// error is rounded to one significant digit, two where the first is 1 or 2 (one digit of 1.4 would be off by 40 %), and
// the value to the same place, but never to more than four significant digits.
std::string FormatBytes(double bytes);                // "143 MiB"
std::string FormatBytes(double bytes, double error);  // "143 MiB ±8"; no error if it is 0
std::string FormatCount(double count);                // "9,412"
std::string FormatCount(double count, double error);  // "9,400 ±120"
std::string FormatShare(double percent,
                        double error);       // "1.3 %", "97 %": one decimal if the error allows it
std::string FormatDuration(double seconds);  // "312 s", "52 min", "3 h 20 min", "4 d 2 h"
std::string FormatInterval(uint64_t bytes);  // "512 KiB": exact, for options

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ESTIMATE_H_
