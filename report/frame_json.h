// Frames as JSON: {"function","library","file","line","language"}.
//
// Errors: none. Thread-safety: pure functions.
//
// Example: object.Raw("created_by", StackJson(stack.created_by));
#ifndef CADASTRE_REPORT_FRAME_JSON_H_
#define CADASTRE_REPORT_FRAME_JSON_H_

#include <string>
#include <vector>

#include "symbolizer/profile.h"

namespace cadastre {

void AppendFrameJson(const Frame& frame, std::string* out);

// [{...}, {...}], leaf first. For many stacks: stack_texts.h.
std::string StackJson(const std::vector<const Frame*>& frames);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FRAME_JSON_H_
