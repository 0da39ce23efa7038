// What a process says about its own CADASTRE_OPTIONS, on standard error.
//
// Thread- and signal-safety: from the constructor alone. No allocation, no stdio. Errors: none.
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

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_COMPLAINTS_H_
