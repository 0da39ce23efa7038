#include "symbolizer/packed_frames.h"

#include <algorithm>

namespace cadastre {
namespace {

// A small text can name one long string a million times: what it unfolds to is bounded too.
constexpr uint64_t kMaxUnfoldedFrameBytes = 4 * kMaxFramesBytes;

uint32_t FlagsOf(const Frame& frame) {
  uint32_t flags = 0;
  if (frame.java) flags |= kSymbolJava;
  if (frame.inlined) flags |= kSymbolInlined;
  if (frame.resolved) flags |= kSymbolResolved;
  return flags;
}

}  // namespace

void PutFrames(const std::vector<Frame>& frames, NumberedStrings* strings, std::string* out) {
  PutVarint(frames.size(), out);
  for (const Frame& frame : frames) {
    for (const std::string* text : {&frame.function, &frame.library, &frame.soname, &frame.file}) {
      PutVarint(strings->Number(*text), out);
    }
    PutVarint(std::max(frame.line, 0), out);
    PutVarint(FlagsOf(frame), out);
  }
}

std::string TextOf(const NumberedStrings& strings, const std::string& body) {
  std::string text;
  strings.Write(&text);
  return text + body;
}

FrameReader::FrameReader(PackedReader* cursor) : cursor_(cursor), strings_(cursor->Count(1)) {
  for (std::string& string : strings_) string = cursor->String();
}

std::string FrameReader::String() {
  uint64_t number = cursor_->Varint();
  if (number < strings_.size() && (unfolded_bytes_ += strings_[number].size()) <= kMaxUnfoldedFrameBytes)
    return strings_[number];
  cursor_->Fail();
  return "";
}

std::vector<Frame> FrameReader::Frames() {
  uint64_t levels = cursor_->Count(6);
  unfolded_bytes_ += levels * sizeof(Frame);
  std::vector<Frame> frames(unfolded_bytes_ <= kMaxUnfoldedFrameBytes ? levels : cursor_->Fail());
  for (Frame& frame : frames) {
    frame.function = String();
    frame.library = String();
    frame.soname = String();
    frame.file = String();
    frame.line = static_cast<int>(std::min<uint64_t>(cursor_->Varint(), INT32_MAX));
    uint64_t flags = cursor_->Varint();
    frame.java = (flags & kSymbolJava) != 0;
    frame.inlined = (flags & kSymbolInlined) != 0;
    frame.resolved = (flags & kSymbolResolved) != 0;
  }
  return frames;
}

}  // namespace cadastre
