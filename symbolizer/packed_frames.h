// Frames in a packed text (packed_text.h): what symbol_block and cached_names have in common.
//
// A text begins with its strings (varint count, then for each: varint length, bytes; string 0 is ""). A raw frame is
// varint n, and n times varint function, library, soname, file (string numbers), varint line, varint flags
// (SymbolFlags).
// Errors: what does not fit fails the PackedReader. Thread-safety: plain values.
//
// Example:
//   NumberedStrings strings;
//   std::string body;
//   PutFrames(frames, &strings, &body);
//   std::string text = TextOf(strings, body);
//   PackedReader cursor(text);
//   FrameReader reader(&cursor);
//   std::vector<Frame> again = reader.Frames();
#ifndef CADASTRE_SYMBOLIZER_PACKED_FRAMES_H_
#define CADASTRE_SYMBOLIZER_PACKED_FRAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/packed_text.h"
#include "symbolizer/profile.h"

namespace cadastre {

// A text of frames is refused beyond this many bytes: half a million frames of 128 bytes each.
inline constexpr uint64_t kMaxFramesBytes = 64 << 20;

enum SymbolFlags : uint32_t { kSymbolJava = 1, kSymbolInlined = 2, kSymbolResolved = 4 };

void PutFrames(const std::vector<Frame>& frames, NumberedStrings* strings, std::string* out);

// The strings, then what names them.
std::string TextOf(const NumberedStrings& strings, const std::string& body);

class FrameReader {
 public:
  explicit FrameReader(PackedReader* cursor);  // reads the strings
  // "" for a number that no string has.
  std::string String();
  std::vector<Frame> Frames();

 private:
  PackedReader* cursor_;
  std::vector<std::string> strings_;
  uint64_t unfolded_bytes_ = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PACKED_FRAMES_H_
