// Live samples, volumes and mappings → the rows of every grouping, not yet in order.
//
// Thread-safety: not thread-safe (names are resolved on demand). Errors: none.
//
// Example: SumRows(profile, &attribution, &report);
#ifndef CADASTRE_REPORT_ROWS_BUILDER_H_
#define CADASTRE_REPORT_ROWS_BUILDER_H_

#include "report/rows.h"

namespace cadastre {

// Fills modules, teams, libraries, threads, holders, shared, sites, suggestions, totals, unattributed and
// divided_sites. Reads report->options and report->older_than_s.
void SumRows(const Profile& profile, Attribution* attribution, Report* report);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ROWS_BUILDER_H_
