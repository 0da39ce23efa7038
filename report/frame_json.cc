#include "report/frame_json.h"

#include "report/json_writer.h"

namespace cadastre {
namespace {

constexpr size_t kBehindStack = 512;  // of a site's other members

}  // namespace

void FrameJson::AppendStack(const std::vector<const Frame*>& frames, std::string* to) {
  // Kilobytes, and some more behind them: a text that grows piece by piece is copied again and again.
  size_t bytes = to->size() + kBehindStack;
  texts_.clear();
  for (const Frame* frame : frames) {
    texts_.push_back(&Of(frame));
    bytes += texts_.back()->size() + 2;
  }
  to->reserve(bytes);
  *to += '[';
  for (size_t i = 0; i < texts_.size(); i++) {
    if (i > 0) *to += ", ";
    *to += *texts_[i];
  }
  *to += ']';
}

const std::string& FrameJson::Of(const Frame* frame) {
  std::string& text = known_[frame];
  if (text.empty()) {
    JsonObject object;
    object.Text("function", frame->function).TextOrNull("library", frame->library).TextOrNull("file", frame->file);
    object.IntegerOrNull("line", frame->line > 0 ? static_cast<uint64_t>(frame->line) : 0)
        .Text("language", frame->java ? "java" : "native");
    text = object.Done();
  }
  return text;
}

}  // namespace cadastre
