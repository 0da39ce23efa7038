// The name of a profile in its directory, or of the reason why there is none.
//
// Thread- and signal-safety: system calls and static buffers; for the one thread that creates the profile.
// Errors: the kernel's, negative.
//
// Example:
//   const long descriptor = CreateProfileFile(spec, path, sizeof(path));
//   if (descriptor < 0) ProfileLeaveReason(spec.directory, pid, {"cannot create the profile", EACCES});
#ifndef CADASTRE_INTERPOSER_PROFILE_NAME_H_
#define CADASTRE_INTERPOSER_PROFILE_NAME_H_

#include <stddef.h>
#include <stdint.h>

#include "interposer/profile_file.h"

namespace cadastre {

// Creates the file under the first name that nobody has, which `path` receives. Its descriptor, or the kernel's error;
// -ENAMETOOLONG also where `capacity` bytes do not hold the path.
long CreateProfileFile(const ProfileSpec& spec, char* path, size_t capacity);

// No profile could be made: leaves the reason where it would be, for whoever has started the process (`cadastre run`,
// `doctor`). As the target of a symbolic link "cadastre-PID.why": it needs no file size, no address space and no disk
// block, and one of these is what is missing.
void ProfileLeaveReason(const char* directory, uint32_t pid, const ProfileError& error);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_PROFILE_NAME_H_
