// A report → what is kept of it to be compared with others: sums by site and owner, and the live samples.
//
// Small beside the profile, so that a hundred snapshots fit. Units: as in growth.h. Errors: none (what cannot be
// compared is found by CompareSnapshots). Thread-safety: pure.
//
// Example: snapshots.push_back(TakeGrowth(report, rules, "pay.cad@10:20", /*first=*/nullptr));
#ifndef CADASTRE_REPORT_GROWTH_SNAPSHOT_H_
#define CADASTRE_REPORT_GROWTH_SNAPSHOT_H_

#include <string>

#include "report/growth.h"
#include "report/rows.h"

namespace cadastre {

// `first`: the first snapshot of the row, for the cohort; nullptr = this is it.
GrowthSnapshot TakeGrowth(const Report& report, const OwnerRules& rules, const std::string& label,
                          const GrowthSnapshot* first);

// What the rules say, whatever file they stand in; the built-in ones too.
std::string RulesHash(const OwnerRules& rules);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_GROWTH_SNAPSHOT_H_
