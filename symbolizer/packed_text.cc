#include "symbolizer/packed_text.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

uint32_t Crc(const std::string& text) { return crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()); }

absl::StatusOr<std::string> Decompress(const char* bytes, uint64_t size, uint64_t text_bytes) {
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
  std::string text;
  std::string chunk(ZSTD_DStreamOutSize(), '\0');
  ZSTD_inBuffer in{bytes, size, 0};
  // In chunks: memory grows with what is really there, not with what the header says.
  while (text.size() < text_bytes) {
    ZSTD_outBuffer out{chunk.data(), chunk.size(), 0};
    size_t hint = ZSTD_decompressStream(stream.get(), &out, &in);
    if (ZSTD_isError(hint)) return absl::DataLossError(absl::StrCat("zstd: ", ZSTD_getErrorName(hint)));
    text.append(chunk, 0, out.pos);
    if (hint == 0 || (out.pos == 0 && in.pos == in.size)) break;
  }
  if (text.size() != text_bytes) return absl::DataLossError("its text is shorter or longer than it says");
  return text;
}

}  // namespace

std::string PackText(const char (&magic)[8], uint32_t version, const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  PackedHeader header{};
  memcpy(header.magic, magic, sizeof(header.magic));
  header.version = version;
  header.checksum = Crc(text);
  header.text_bytes = text.size();
  header.stored_bytes = packed.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + packed;
}

absl::StatusOr<std::string> UnpackText(const char (&magic)[8], uint32_t version, uint64_t max_text_bytes,
                                       const char* bytes, uint64_t size) {
  PackedHeader header;
  if (size < sizeof(header)) return absl::DataLossError("it is cut");
  memcpy(&header, bytes, sizeof(header));
  if (memcmp(header.magic, magic, sizeof(header.magic)) != 0) return absl::DataLossError("bad magic");
  if (header.version != version) {
    return absl::UnimplementedError(absl::StrCat("version ", header.version, " is not supported"));
  }
  if (header.stored_bytes > size - sizeof(header)) return absl::DataLossError("it is cut");
  if (header.text_bytes > max_text_bytes) return absl::DataLossError("it is too large");
  absl::StatusOr<std::string> text = Decompress(bytes + sizeof(header), header.stored_bytes, header.text_bytes);
  if (!text.ok()) return text.status();
  if (Crc(*text) != header.checksum) return absl::DataLossError("its checksum does not match");
  return text;
}

void PutVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void PutString(const std::string& text, std::string* out) {
  PutVarint(text.size(), out);
  out->append(text);
}

uint64_t NumberedStrings::Number(const std::string& text) {
  auto [entry, inserted] = numbers_.try_emplace(text, strings_.size());
  if (inserted) strings_.push_back(text);
  return entry->second;
}

void NumberedStrings::Write(std::string* out) const {
  PutVarint(strings_.size(), out);
  for (const std::string& text : strings_) PutString(text, out);
}

uint64_t PackedReader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == end_) return Fail();
    uint8_t byte = *at_++;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return Fail();
}

uint64_t PackedReader::Word() {
  uint64_t value = 0;
  if (left() < sizeof(value)) return Fail();
  memcpy(&value, at_, sizeof(value));
  at_ += sizeof(value);
  return value;
}

std::string PackedReader::Bytes(uint64_t count) {
  if (count > left()) return Fail(), "";
  std::string bytes(at_, count);
  at_ += count;
  return bytes;
}

uint64_t PackedReader::Count(uint64_t bytes_each) {
  uint64_t count = Varint();
  return count <= left() / bytes_each ? count : Fail();
}

uint64_t PackedReader::Fail() {
  ok_ = false;
  at_ = end_;
  return 0;
}

}  // namespace cadastre
