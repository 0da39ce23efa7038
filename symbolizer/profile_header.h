// The header of a profile file: what it says by itself, and which of its regions can be read.
//
// Nothing in it is trusted. Errors: DataLoss for what is no profile, or none of a version that this program reads;
// damage that leaves something to read becomes a warning of the profile and, where sums no longer mean anything, its
// `incomplete`. Thread-safety: pure functions.
//
// Example:
//   format::Header header;
//   if (absl::Status status = LoadHeader(path, source, &header); !status.ok()) return status;
//   TakeHeader(header, &profile);
//   CheckRegions(source, &header, &profile);
#ifndef CADASTRE_SYMBOLIZER_PROFILE_HEADER_H_
#define CADASTRE_SYMBOLIZER_PROFILE_HEADER_H_

#include <string>

#include "absl/status/status.h"
#include "interposer/profile_format.h"
#include "symbolizer/profile.h"
#include "symbolizer/profile_bytes.h"

namespace cadastre {

absl::Status LoadHeader(const std::string& path, ProfileBytes& source, format::Header* header);

// All that is in the header alone; profile->path is there already.
void TakeHeader(const format::Header& header, Profile* profile);

// Takes away every region that cannot be what it says, and says what a cut file lacks.
void CheckRegions(const ProfileBytes& source, format::Header* header, Profile* profile);

// Each text once: a symbolized copy brings the warnings of its making along.
void AddWarning(std::string what, Profile* profile);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PROFILE_HEADER_H_
