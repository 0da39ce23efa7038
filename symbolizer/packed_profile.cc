#include "symbolizer/packed_profile.h"

#include <stddef.h>
#include <zlib.h>

#include "symbolizer/record_columns.h"

namespace cadastre {

uint32_t PackedHeaderCheck(const PackedBlock& block) {
  constexpr size_t kBegin = offsetof(PackedBlock, stored_check);
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(&block) + kBegin, sizeof(PackedBlock) - kBegin));
}

uint32_t PackedStoredCheck(const PackedBlock& block, const char* stored) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(stored), block.stored_bytes));
}

uint64_t PackedUnitOf(const PackedBlock& block) {
  switch (block.encoding) {
    case kPackedPlain:
      return 1;
    case kPackedRecords:
      return RecordBytesOf(block.region);
    case kPackedStacks:
      return block.region == format::kRegionFrames ? sizeof(uint64_t) : 0;
    default:
      return 0;
  }
}

uint64_t LeastStoredBytes(const PackedBlock& block) {
  return (block.count * PackedUnitOf(block) + kMostUnfolded - 1) / kMostUnfolded;
}

}  // namespace cadastre
