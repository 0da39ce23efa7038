// The records of a region that was loaded from a profile file.
//
// Units: indices in the region. Errors: none; what lies behind the region's end is not asked for. Thread-safety: pure
// functions.
//
// Example: ForEachRecord<format::SiteRecord>(sites, [&](uint64_t index, const format::SiteRecord& site) { ... });
#ifndef CADASTRE_SYMBOLIZER_PROFILE_RECORDS_H_
#define CADASTRE_SYMBOLIZER_PROFILE_RECORDS_H_

#include <string.h>

#include <algorithm>
#include <cstdint>

#include "symbolizer/profile_bytes.h"

namespace cadastre {

inline constexpr uint64_t kMaxAddress = 1ull << 57;  // of the target's memory: five-level paging

template <typename Record>
Record RecordAt(const LoadedRegion& region, uint64_t index) {
  Record record;
  memcpy(&record, region.data() + index * sizeof(Record), sizeof(Record));  // a buffer in memory need not be aligned
  return record;
}

template <typename Record>
uint64_t RecordCount(const LoadedRegion& region) {
  return region.bytes() / sizeof(Record);
}

// Calls visit(index, record) for each record that may hold something; holes are not visited.
template <typename Record, typename Visit>
void ForEachRecord(const LoadedRegion& region, Visit visit) {
  uint64_t next = 0;
  for (const Extent& extent : region.extents()) {
    uint64_t first = std::max(next, extent.begin / sizeof(Record));
    uint64_t end = std::min((extent.end + sizeof(Record) - 1) / sizeof(Record), RecordCount<Record>(region));
    for (uint64_t index = first; index < end; index++) visit(index, RecordAt<Record>(region, index));
    next = std::max(next, end);
  }
}

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PROFILE_RECORDS_H_
