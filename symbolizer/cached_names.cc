#include "symbolizer/cached_names.h"

#include "absl/status/status.h"
#include "symbolizer/packed_frames.h"
#include "symbolizer/packed_text.h"

namespace cadastre {

std::string WriteCachedNames(const CachedNames& cached) {
  NumberedStrings strings;
  std::string body;
  for (const std::string* text : {&cached.build_id, &cached.sources, &cached.soname})
    PutVarint(strings.Number(*text), &body);
  PutVarint(cached.names.size(), &body);
  uint64_t before = 0;
  for (const auto& [address, frames] : cached.names) {
    PutVarint(address - before, &body);
    PutFrames(frames, &strings, &body);
    before = address;
  }
  return PackText(kCachedNamesMagic, kCachedNamesVersion, TextOf(strings, body));
}

absl::StatusOr<CachedNames> ParseCachedNames(const char* bytes, uint64_t size) {
  absl::StatusOr<std::string> text = UnpackText(kCachedNamesMagic, kCachedNamesVersion, kMaxFramesBytes, bytes, size);
  if (!text.ok()) return text.status();

  PackedReader cursor(*text);
  FrameReader reader(&cursor);
  CachedNames cached;
  cached.build_id = reader.String();
  cached.sources = reader.String();
  cached.soname = reader.String();
  const uint64_t count = cursor.Count(2);
  cached.names.resize(count <= kMaxCachedNames ? count : cursor.Fail());
  uint64_t before = 0;
  for (size_t i = 0; i < cached.names.size(); i++) {
    auto& [address, frames] = cached.names[i];
    const uint64_t difference = cursor.Varint();
    // Only the first may stand at the beginning, and none beyond the end.
    if ((difference == 0 && i > 0) || difference > UINT64_MAX - before) cursor.Fail();
    address = before += difference;
    frames = reader.Frames();
    if (!cursor.ok()) return absl::DataLossError("its names are damaged");
  }
  if (!cursor.ok() || cursor.left() > 0) return absl::DataLossError("its text is damaged");
  return cached;
}

}  // namespace cadastre
