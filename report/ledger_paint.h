// What is known of ranges of addresses, painted over one another: what is surer, or says more, lies on top.
//
// Errors: none. Thread-safety: as Attribution.
//
// Example: AddressPaint<LedgerUse> paint = PaintAddresses(memory, inputs);
#ifndef CADASTRE_REPORT_LEDGER_PAINT_H_
#define CADASTRE_REPORT_LEDGER_PAINT_H_

#include <string>

#include "report/address_paint.h"
#include "report/ledger_areas.h"

namespace cadastre {

AddressPaint<LedgerUse> PaintAddresses(const ProcessMemory& memory, const LedgerInputs& inputs);

// Of an area that is named so: Cadastre's, the owner's by the rules, else the file's.
LedgerUse LibraryUse(const std::string& name, LedgerKind kind, const LedgerInputs& inputs);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LEDGER_PAINT_H_
