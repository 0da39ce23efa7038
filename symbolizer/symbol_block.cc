#include "symbolizer/symbol_block.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxUnfoldedBytes = 4 * kMaxSymbolBytes;

void PutVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

uint32_t Crc(const std::string& text) { return crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size()); }

uint32_t FlagsOf(const Frame& frame) {
  uint32_t flags = 0;
  if (frame.java) flags |= kSymbolJava;
  if (frame.inlined) flags |= kSymbolInlined;
  if (frame.resolved) flags |= kSymbolResolved;
  return flags;
}

class StringTable {
 public:
  StringTable() { Number(""); }
  uint64_t Number(const std::string& text) {
    auto [entry, inserted] = numbers_.try_emplace(text, strings_.size());
    if (inserted) strings_.push_back(text);
    return entry->second;
  }
  void Write(std::string* out) const {
    PutVarint(strings_.size(), out);
    for (const std::string& text : strings_) {
      PutVarint(text.size(), out);
      out->append(text);
    }
  }

 private:
  absl::flat_hash_map<std::string, uint64_t> numbers_;
  std::vector<std::string> strings_;
};

// Reads the text of a block. After the first thing that does not fit, ok() is false and every further read gives 0 or
// "".
class Cursor {
 public:
  explicit Cursor(const std::string& text) : at_(text.data()), end_(text.data() + text.size()) {}
  bool ok() const { return ok_; }
  uint64_t left() const { return end_ - at_; }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return Fail();
      uint8_t byte = *at_++;
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return Fail();
  }
  uint64_t Word() {
    uint64_t value = 0;
    if (left() < sizeof(value)) return Fail();
    memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  std::string Bytes(uint64_t count) {
    if (count > left()) return Fail(), "";
    std::string bytes(at_, count);
    at_ += count;
    return bytes;
  }
  // A count of things that take at least `bytes_each`: no more than can still be there, so nothing is reserved for a
  // lie.
  uint64_t Count(uint64_t bytes_each) {
    uint64_t count = Varint();
    return count <= left() / bytes_each ? count : Fail();
  }
  uint64_t Fail() {
    ok_ = false;
    at_ = end_;
    return 0;
  }

 private:
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

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

std::string WriteSymbolBlock(const SymbolBlock& block) {
  StringTable strings;
  std::string body;
  PutVarint(block.frames.size(), &body);
  for (const auto& [raw, frames] : block.frames) {
    body.append(reinterpret_cast<const char*>(&raw), sizeof(raw));
    PutVarint(frames.size(), &body);
    for (const Frame& frame : frames) {
      for (const std::string* text : {&frame.function, &frame.library, &frame.soname, &frame.file}) {
        PutVarint(strings.Number(*text), &body);
      }
      PutVarint(std::max(frame.line, 0), &body);
      PutVarint(FlagsOf(frame), &body);
    }
  }
  PutVarint(block.warnings.size(), &body);
  for (const std::string& warning : block.warnings) PutVarint(strings.Number(warning), &body);

  std::string text;
  strings.Write(&text);
  text += body;
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  SymbolBlockHeader header{};
  memcpy(header.magic, kSymbolBlockMagic, sizeof(header.magic));
  header.version = kSymbolBlockVersion;
  header.checksum = Crc(text);
  header.text_bytes = text.size();
  header.stored_bytes = packed.size();
  return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + packed;
}

absl::StatusOr<SymbolBlock> ParseSymbolBlock(const char* bytes, uint64_t size) {
  SymbolBlockHeader header;
  if (size < sizeof(header)) return absl::DataLossError("it is cut");
  memcpy(&header, bytes, sizeof(header));
  if (memcmp(header.magic, kSymbolBlockMagic, sizeof(header.magic)) != 0) return absl::DataLossError("bad magic");
  if (header.version != kSymbolBlockVersion) {
    return absl::UnimplementedError(absl::StrCat("version ", header.version, " is not supported"));
  }
  if (header.stored_bytes > size - sizeof(header)) return absl::DataLossError("it is cut");
  if (header.text_bytes > kMaxSymbolBytes) return absl::DataLossError("it is too large");
  absl::StatusOr<std::string> text = Decompress(bytes + sizeof(header), header.stored_bytes, header.text_bytes);
  if (!text.ok()) return text.status();
  if (Crc(*text) != header.checksum) return absl::DataLossError("its checksum does not match");

  Cursor cursor(*text);
  std::vector<std::string> strings(cursor.Count(1));
  for (std::string& string : strings) string = cursor.Bytes(cursor.Varint());
  // A small text can name one long string a million times: what it unfolds to is bounded too.
  uint64_t unfolded_bytes = 0;
  auto string_at = [&](uint64_t number) {
    if (number < strings.size() && (unfolded_bytes += strings[number].size()) <= kMaxUnfoldedBytes)
      return strings[number];
    cursor.Fail();
    return std::string();
  };
  SymbolBlock block;
  block.frames.resize(cursor.Count(9));
  for (auto& [raw, frames] : block.frames) {
    raw = cursor.Word();
    uint64_t levels = cursor.Count(6);
    unfolded_bytes += levels * sizeof(Frame);
    frames.resize(unfolded_bytes <= kMaxUnfoldedBytes ? levels : cursor.Fail());
    for (Frame& frame : frames) {
      frame.function = string_at(cursor.Varint());
      frame.library = string_at(cursor.Varint());
      frame.soname = string_at(cursor.Varint());
      frame.file = string_at(cursor.Varint());
      frame.line = static_cast<int>(std::min<uint64_t>(cursor.Varint(), INT32_MAX));
      uint64_t flags = cursor.Varint();
      frame.java = (flags & kSymbolJava) != 0;
      frame.inlined = (flags & kSymbolInlined) != 0;
      frame.resolved = (flags & kSymbolResolved) != 0;
    }
    if (frames.empty()) cursor.Fail();
    if (!cursor.ok()) return absl::DataLossError("its frames are damaged");
  }
  block.warnings.resize(cursor.Count(1));
  for (std::string& warning : block.warnings) warning = string_at(cursor.Varint());
  if (!cursor.ok()) return absl::DataLossError("its text is damaged");
  return block;
}

}  // namespace cadastre
