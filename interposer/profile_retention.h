// keep=N: before a new profile is made, profiles of dead processes of the same program on the same host that `cadastre
// run` or `watch` have already saved are removed, oldest first, until at most N are left.
//
// Thread- and signal-safety: runs once, in SessionOpen; system calls only. Errors are ignored: what cannot be removed
// stays.
#ifndef CADASTRE_INTERPOSER_PROFILE_RETENTION_H_
#define CADASTRE_INTERPOSER_PROFILE_RETENTION_H_

#include <stdint.h>

namespace cadastre {

// `name` is the file that is about to be made in `directory`.
void RemoveOldProfiles(const char* directory, const char* name, uint32_t keep);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_PROFILE_RETENTION_H_
