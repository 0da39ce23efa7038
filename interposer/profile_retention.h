// keep=N: profiles of dead processes of the same program (its file) on the same host are removed, oldest first, until
// at most N are left: those that `cadastre run` or `watch` have saved, and those of processes that ended by themselves
// where nobody means to save them. What was lost is never removed unsaved.
//
// Thread- and signal-safety: before a profile is made and at a clean exit; system calls only, and static memory. Errors
// are ignored: what cannot be removed stays.
#ifndef CADASTRE_INTERPOSER_PROFILE_RETENTION_H_
#define CADASTRE_INTERPOSER_PROFILE_RETENTION_H_

#include <stdint.h>

#include "interposer/process_facts.h"

namespace cadastre {

void RemoveOldProfiles(const char* directory, const ProcessFacts& facts, uint32_t keep);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_PROFILE_RETENTION_H_
