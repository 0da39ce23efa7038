// The profile that a packed one was made from, as ProfileBytes: regions are unpacked when they are loaded.
//
// Memory: the file, and what is loaded. Errors: a Status where the header cannot be true; a block that is damaged or
// cut off is not in `extents` of what is loaded, and `damage()` says so. Thread-safety: none.
//
// Example:
//   absl::StatusOr<std::unique_ptr<ProfileBytes>> source = Unpacked("pay.cad", *OpenRawProfileFile("pay.cad"));
#ifndef CADASTRE_SYMBOLIZER_PACKED_BYTES_H_
#define CADASTRE_SYMBOLIZER_PACKED_BYTES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "symbolizer/profile_bytes.h"

namespace cadastre {

// `file` itself if it is not packed. `path` is for messages.
absl::StatusOr<std::unique_ptr<ProfileBytes>> Unpacked(const std::string& path, std::unique_ptr<ProfileBytes> file);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PACKED_BYTES_H_
