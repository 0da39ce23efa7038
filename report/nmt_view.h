// HotSpot's report of native memory tracking with what it cannot see as one more category, "External (via
// interposition)": as it would read if the JVM counted every library's memory.
//
// External is what is live in malloc and did not come through HotSpot's own os::malloc, and what was mapped by others
// than libjvm (an allocator's own mappings aside: they hold the blocks). By module in the summary, by stack in the
// detail view. Amounts are in bytes, as the report that it extends. Errors: none. Thread-safety: pure function.
#ifndef CADASTRE_REPORT_NMT_VIEW_H_
#define CADASTRE_REPORT_NMT_VIEW_H_

#include <string>

#include "report/ledger.h"
#include "symbolizer/process_memory.h"

namespace cadastre {

// Without a profile External cannot be told, and the text says so.
std::string FormatNmtView(const ProcessMemory& memory, const LedgerInputs& inputs, bool detail);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_NMT_VIEW_H_
