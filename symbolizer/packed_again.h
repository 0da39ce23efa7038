// A packed profile (packed_profile.h) with its first megabytes of text packed thoroughly: what was saved in a hurry,
// while its process went on, takes less room once there is time. The same profile, block by block.
//
// Errors: InvalidArgument for what is no packed profile or has damage: it is better left as it is. Thread-safety: pure
// function.
//
// Example: absl::StatusOr<std::string> smaller = PackedAgain(bytes_of_the_file);
#ifndef CADASTRE_SYMBOLIZER_PACKED_AGAIN_H_
#define CADASTRE_SYMBOLIZER_PACKED_AGAIN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cadastre {

absl::StatusOr<std::string> PackedAgain(std::string_view file);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PACKED_AGAIN_H_
