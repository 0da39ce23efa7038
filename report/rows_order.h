// The last step of a report's rows: those of the metric that is asked for, heaviest first.
//
// Thread-safety: pure. Errors: none.
//
// Example: DropOtherKind(Metric::kLive, &report); SortRows(Metric::kLive, &report);
#ifndef CADASTRE_REPORT_ROWS_ORDER_H_
#define CADASTRE_REPORT_ROWS_ORDER_H_

#include "report/rows.h"

namespace cadastre {

// Mappings are shown where they are asked for, and nothing else there.
void DropOtherKind(Metric metric, Report* report);

// Rows of every kind, and the suggestions, of which the heaviest stay.
void SortRows(Metric metric, Report* report);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ROWS_ORDER_H_
