#include "report/frame_json.h"

#include <cstdint>

#include "report/json_writer.h"

namespace cadastre {

void AppendFrameJson(const Frame& frame, std::string* out) {
  JsonObject object(out);
  object.Text("function", frame.function).TextOrNull("library", frame.library).TextOrNull("file", frame.file);
  object.IntegerOrNull("line", frame.line > 0 ? static_cast<uint64_t>(frame.line) : 0)
      .Text("language", frame.java ? "java" : "native")
      .Done();
}

std::string StackJson(const std::vector<const Frame*>& frames) {
  std::string out = "[";
  for (const Frame* frame : frames) {
    if (out.size() > 1) out += ", ";
    AppendFrameJson(*frame, &out);
  }
  return out += ']';
}

}  // namespace cadastre
