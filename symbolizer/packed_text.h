// What the regions that `cadastre` appends to a copied profile are made of: one checksummed zstd frame of varints,
// words and numbered strings.
//
// Bytes, little-endian: PackedHeader, then `stored_bytes` of zstd. A varint is LEB128, unsigned.
// Errors: UnpackText refuses a block whose magic, version, lengths or checksum do not fit. PackedReader never reads
// beyond the text; after the first thing that does not fit, ok() is false and every further read gives 0 or "".
// Thread-safety: plain values.
//
// Example:
//   std::string text;
//   PutVarint(42, &text);
//   std::string block = PackText(kMagic, kVersion, text);
//   absl::StatusOr<std::string> again = UnpackText(kMagic, kVersion, kMaxBytes, block.data(), block.size());
#ifndef CADASTRE_SYMBOLIZER_PACKED_TEXT_H_
#define CADASTRE_SYMBOLIZER_PACKED_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"

namespace cadastre {

struct PackedHeader {
  char magic[8];
  uint32_t version;
  uint32_t checksum;      // CRC-32 (zlib) of the text before compression
  uint64_t text_bytes;    // before compression
  uint64_t stored_bytes;  // after
};
static_assert(sizeof(PackedHeader) == 32);

std::string PackText(const char (&magic)[8], uint32_t version, const std::string& text);
// `bytes` may be longer than the block (regions are padded to pages). `max_text_bytes` bounds what a small block may
// unfold to.
absl::StatusOr<std::string> UnpackText(const char (&magic)[8], uint32_t version, uint64_t max_text_bytes,
                                       const char* bytes, uint64_t size);

void PutVarint(uint64_t value, std::string* out);
void PutString(const std::string& text, std::string* out);  // varint length, bytes

// Strings that are written once and named by number; string 0 is "".
class NumberedStrings {
 public:
  NumberedStrings() { Number(""); }
  uint64_t Number(const std::string& text);
  void Write(std::string* out) const;

 private:
  absl::flat_hash_map<std::string, uint64_t> numbers_;
  std::vector<std::string> strings_;
};

class PackedReader {
 public:
  explicit PackedReader(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) {}
  bool ok() const { return ok_; }
  uint64_t left() const { return end_ - at_; }

  uint64_t Varint();
  uint64_t Word();
  std::string Bytes(uint64_t count);
  std::string String() { return Bytes(Varint()); }
  // A count of things that take at least `bytes_each`: no more than can still be there, so nothing is reserved for a
  // lie.
  uint64_t Count(uint64_t bytes_each);
  uint64_t Fail();

 private:
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PACKED_TEXT_H_
