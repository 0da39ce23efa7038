#include "symbolizer/symbol_block.h"

#include "absl/status/status.h"
#include "symbolizer/packed_frames.h"
#include "symbolizer/packed_text.h"

namespace cadastre {

std::string WriteSymbolBlock(const SymbolBlock& block) {
  NumberedStrings strings;
  std::string body;
  PutVarint(block.frames.size(), &body);
  for (const auto& [raw, frames] : block.frames) {
    body.append(reinterpret_cast<const char*>(&raw), sizeof(raw));
    PutFrames(frames, &strings, &body);
  }
  PutVarint(block.warnings.size(), &body);
  for (const std::string& warning : block.warnings) PutVarint(strings.Number(warning), &body);
  return PackText(kSymbolBlockMagic, kSymbolBlockVersion, TextOf(strings, body));
}

absl::StatusOr<SymbolBlock> ParseSymbolBlock(const char* bytes, uint64_t size) {
  absl::StatusOr<std::string> text = UnpackText(kSymbolBlockMagic, kSymbolBlockVersion, kMaxFramesBytes, bytes, size);
  if (!text.ok()) return text.status();

  PackedReader cursor(*text);
  FrameReader reader(&cursor);
  SymbolBlock block;
  block.frames.resize(cursor.Count(9));
  for (auto& [raw, frames] : block.frames) {
    raw = cursor.Word();
    frames = reader.Frames();
    if (frames.empty()) cursor.Fail();
    if (!cursor.ok()) return absl::DataLossError("its frames are damaged");
  }
  block.warnings.resize(cursor.Count(1));
  for (std::string& warning : block.warnings) warning = reader.String();
  if (!cursor.ok()) return absl::DataLossError("its text is damaged");
  return block;
}

}  // namespace cadastre
