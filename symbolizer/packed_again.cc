#include "symbolizer/packed_again.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "interposer/profile_format.h"
#include "symbolizer/packed_codec.h"
#include "symbolizer/packed_profile.h"

namespace cadastre {
namespace {

void Append(const PackedBlock& block, std::string_view stored, std::string* out) {
  out->append(reinterpret_cast<const char*>(&block), sizeof(block));
  out->append(stored);
}

// False: it would not be smaller.
bool PackThoroughly(BlockCompressor* compressor, PackedBlock* block, std::string_view stored, std::string* packed) {
  ColumnText columns;
  columns.text.resize(block->text_bytes);
  if (!Uncompress(block->codec, stored.data(), stored.size(), &columns.text) ||
      !compressor->Compress(columns, Effort::kThorough, packed).ok())
    return false;
  PadTo(LeastStoredBytes(*block), CodecOf(Effort::kThorough), packed);
  if (packed->size() >= stored.size()) return false;
  block->codec = CodecOf(Effort::kThorough);
  block->stored_bytes = static_cast<uint32_t>(packed->size());
  block->stored_check = PackedStoredCheck(*block, packed->data());
  block->header_check = PackedHeaderCheck(*block);
  return true;
}

}  // namespace

absl::StatusOr<std::string> PackedAgain(std::string_view file) {
  const absl::Status damaged = absl::InvalidArgumentError("not a packed profile, or a damaged one");
  format::Header header;
  if (file.size() < sizeof(header)) return damaged;
  memcpy(&header, file.data(), sizeof(header));
  if (memcmp(header.magic, format::kMagic, sizeof(format::kMagic)) != 0 || !format::IsPackedVersion(header.version) ||
      header.packed_offset < sizeof(header) || header.packed_offset > file.size())
    return damaged;
  // Sites of version 3 have other columns.
  if (header.version < 4) return absl::InvalidArgumentError("packed by an older program");
  header.version = format::kPackedVersion;
  std::string out(file.substr(0, header.packed_offset));
  memcpy(out.data(), &header, sizeof(header));
  BlockCompressor compressor;
  uint64_t patience = kPatientTextBytes;
  std::string packed;
  for (size_t at = header.packed_offset; file.size() - at >= sizeof(PackedBlock);) {
    PackedBlock block;
    memcpy(&block, file.data() + at, sizeof(block));
    at += sizeof(block);
    if (block.magic != kPackedBlockMagic || block.header_check != PackedHeaderCheck(block) ||
        block.stored_bytes > file.size() - at || block.text_bytes > kMaxPackedTextBytes)
      return damaged;
    const std::string_view stored = file.substr(at, block.stored_bytes);
    at += block.stored_bytes;
    if (block.stored_check != PackedStoredCheck(block, stored.data())) return damaged;
    if (block.encoding == kPackedEnd) {
      Append(block, stored, &out);
      return at == file.size() ? absl::StatusOr<std::string>(std::move(out)) : damaged;
    }
    const bool is_smaller = block.codec == kCodecZstd && block.text_bytes <= patience &&
                            PackThoroughly(&compressor, &block, stored, &packed);
    patience -= std::min<uint64_t>(patience, block.text_bytes);
    Append(block, is_smaller ? std::string_view(packed) : stored, &out);
  }
  return damaged;
}

}  // namespace cadastre
