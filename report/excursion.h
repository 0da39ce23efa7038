// A rise that was given back, or a fall that was made up for: one event, and what the series is without it.
//
// It is the highest point (or the lowest) with what lies beside it and is higher than the levels on both sides. It must
// stand out: by more than 4 standard errors, 2 % of the level, and a multiple of how the points beside it scatter.
// Whether the levels on both sides are one is for the series without it to say. Units: as in Series. Errors: none.
// Thread-safety: pure.
//
// Example: if (auto event = FindExcursion(series)) return JudgeAround(WithoutExcursion(series, *event), *event);
#ifndef CADASTRE_REPORT_EXCURSION_H_
#define CADASTRE_REPORT_EXCURSION_H_

#include <cstddef>
#include <optional>

#include "report/verdict.h"

namespace cadastre {

struct Excursion {
  size_t before = 0, behind = 0;  // the points beside it
  double bytes = 0;               // how far it went from the nearer of them; below zero: a fall
  double hours = 0;
  size_t Points() const { return behind - before - 1; }
};

// Of series of six points or more; what takes more than half of it is no event. Waves are to be looked for before.
std::optional<Excursion> FindExcursion(const Series& series);

Series WithoutExcursion(const Series& series, const Excursion& excursion);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_EXCURSION_H_
