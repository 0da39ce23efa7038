#include "report/frame_json.h"

#include "absl/strings/str_cat.h"
#include "report/json_writer.h"

namespace cadastre {

void FrameJson::AppendStack(const std::vector<const Frame*>& frames, std::string* to) {
  *to += "[";
  const char* before = "";
  for (const Frame* frame : frames) {
    absl::StrAppend(to, before, Of(frame));
    before = ", ";
  }
  *to += "]";
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
