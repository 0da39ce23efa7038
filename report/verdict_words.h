// Verdicts and the words of their reasons, for the judges of series: few points, waves, shapes.
//
// Units: bytes, hours. Errors: none. Thread-safety: pure.
//
// Example: return MakeVerdict(GrowthKind::kStep, absl::StrCat(SignedText(change), " within ", HoursText(hours)));
#ifndef CADASTRE_REPORT_VERDICT_WORDS_H_
#define CADASTRE_REPORT_VERDICT_WORDS_H_

#include <string>

#include "report/verdict.h"

namespace cadastre {

std::string SignedText(double bytes);         // "+12 MiB", "-3 MiB"
std::string RateText(double bytes_per_hour);  // "12 MiB/h"
std::string HoursText(double hours);          // "3 h 20 min"

Verdict MakeVerdict(GrowthKind kind, const std::string& reason);

// kSteadyGrowth, or kShrinking where the rate is below zero.
Verdict MakeTrend(double bytes_per_hour, double error, const std::string& reason);
bool IsTrend(const Verdict& verdict);

// Something has changed, and what becomes of it cannot be said.
Verdict NotToBeTold(const Series& series, double change_bytes);

// No growth was found: kNoChange if what could hide is little, else kTooNoisy with what would tell. `error`: standard
// error of the change over the whole series.
Verdict WithoutGrowth(const Series& series, double change_bytes, double error);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_VERDICT_WORDS_H_
