// A series as it is judged: not more points than fits are made for, and errors that say enough where samples are few.
//
// Thread-safety: pure. Errors: none.
//
// Example: const Series judged = PrepareSeries(series);
#ifndef CADASTRE_REPORT_SERIES_PREPARE_H_
#define CADASTRE_REPORT_SERIES_PREPARE_H_

#include "report/verdict.h"

namespace cadastre {

Series PrepareSeries(const Series& series);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SERIES_PREPARE_H_
