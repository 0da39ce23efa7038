// What a process says about its own CADASTRE_OPTIONS, on standard error.
//
// Thread- and signal-safety: Complain and SayComplaints from the constructor alone; SayOnStandardError from anywhere,
// and where two threads speak at once one of them is not heard. No allocation, no stdio. Errors: none.
#ifndef CADASTRE_INTERPOSER_COMPLAINTS_H_
#define CADASTRE_INTERPOSER_COMPLAINTS_H_

#include <stddef.h>

#include "interposer/options.h"
#include "interposer/process_facts.h"

namespace cadastre {

// Kept until SayComplaints, which is called once it is known that this process is meant. what: "unknown option", item:
// the piece of the text that is meant; both live on.
void Complain(const char* what, const char* item, size_t length);

// Nothing where the parent has said the same.
void SayComplaints(const ProcessFacts& facts, const Options& options, const char* options_text);

// One line, "cadastre: WHAT: ITEM". Only while file descriptor 2 is what it was when the process began: later it may be
// a file of the program's.
void SayOnStandardError(const ProcessFacts& facts, const char* what, const char* item, size_t item_length);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_COMPLAINTS_H_
