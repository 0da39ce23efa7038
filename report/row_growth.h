// Growth between earlier snapshots and the report on the last of them → the report's rows: SINCE and VERDICT.
//
// Modules, teams and the unattributed row get it; by library, thread and holder growth is not known. Units: bytes.
// Errors: none. Thread-safety: pure.
//
// Example: AddGrowth(*CompareSnapshots({before, now}, {}), &report);
#ifndef CADASTRE_REPORT_ROW_GROWTH_H_
#define CADASTRE_REPORT_ROW_GROWTH_H_

#include "report/growth.h"
#include "report/rows.h"

namespace cadastre {

// `growth` ends with what `report` was made from.
void AddGrowth(const Growth& growth, Report* report);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ROW_GROWTH_H_
