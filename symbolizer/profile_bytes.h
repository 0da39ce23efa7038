// Where the bytes of a profile come from: a sparse file that may still be written to, or a buffer.
//
// A live profile is 64 MiB and more, mostly holes, and can be cut under the reader's feet. So nothing of it is mapped
// (a mapping of a file that shrinks raises SIGBUS): data extents alone are read with pread into anonymous memory, where
// holes cost nothing. Units: bytes from the start of the file. Errors: a part that cannot be read is simply not in
// `extents`; what a caller sees there is zeros, which means "never written". Thread-safety: none.
//
// Example:
//   absl::StatusOr<std::unique_ptr<ProfileBytes>> source = OpenProfileFile("pay.cad");
//   LoadedRegion sites = (*source)->Load(region.offset, region.bytes);
//   for (const Extent& extent : sites.extents()) Scan(sites.data() + extent.begin, extent.end - extent.begin);
#ifndef CADASTRE_SYMBOLIZER_PROFILE_BYTES_H_
#define CADASTRE_SYMBOLIZER_PROFILE_BYTES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace cadastre {

struct Extent {
  uint64_t begin = 0, end = 0;
};

// A part of a profile in memory. bytes() is what was asked for, cut to what the file has.
class LoadedRegion {
 public:
  LoadedRegion() = default;
  LoadedRegion(const char* data, uint64_t bytes, std::vector<Extent> extents, std::shared_ptr<void> owner)
      : data_(data), bytes_(bytes), extents_(std::move(extents)), owner_(std::move(owner)) {}

  const char* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // Ranges that may hold something other than zeros, relative to data(), ascending, apart.
  const std::vector<Extent>& extents() const { return extents_; }

 private:
  const char* data_ = nullptr;
  uint64_t bytes_ = 0;
  std::vector<Extent> extents_;
  std::shared_ptr<void> owner_;
};

class ProfileBytes {
 public:
  virtual ~ProfileBytes() = default;
  virtual uint64_t size() const = 0;
  // True where a second Load may give other bytes (a file), so that records must be checked against being changed while
  // read.
  virtual bool may_change() const = 0;
  virtual LoadedRegion Load(uint64_t offset, uint64_t bytes) = 0;
  // What of a packed profile (packed_profile.h) is not there any more; empty = nothing.
  virtual std::string damage() const { return ""; }
};

// Refuses what is not a regular file. The message names the path. A packed profile is given unpacked.
absl::StatusOr<std::unique_ptr<ProfileBytes>> OpenProfileFile(const std::string& path);

// `bytes` must outlive the result and every region loaded from it. They are given as they are.
std::unique_ptr<ProfileBytes> ProfileBytesInMemory(const char* bytes, uint64_t size);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PROFILE_BYTES_H_
