#include "symbolizer/symbol_block.h"

#include <algorithm>

#include "absl/status/status.h"
#include "symbolizer/packed_text.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxUnfoldedBytes = 4 * kMaxSymbolBytes;

uint32_t FlagsOf(const Frame& frame) {
  uint32_t flags = 0;
  if (frame.java) flags |= kSymbolJava;
  if (frame.inlined) flags |= kSymbolInlined;
  if (frame.resolved) flags |= kSymbolResolved;
  return flags;
}

}  // namespace

std::string WriteSymbolBlock(const SymbolBlock& block) {
  NumberedStrings strings;
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
  return PackText(kSymbolBlockMagic, kSymbolBlockVersion, text);
}

absl::StatusOr<SymbolBlock> ParseSymbolBlock(const char* bytes, uint64_t size) {
  absl::StatusOr<std::string> text = UnpackText(kSymbolBlockMagic, kSymbolBlockVersion, kMaxSymbolBytes, bytes, size);
  if (!text.ok()) return text.status();

  PackedReader cursor(*text);
  std::vector<std::string> strings(cursor.Count(1));
  for (std::string& string : strings) string = cursor.String();
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
