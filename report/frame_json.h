// A stack as JSON: [{"function","library","file","line","language"}, ...], leaf first. The text of each frame is made
// once, because most stacks share most of theirs.
//
// Errors: none. Thread-safety: not thread-safe; frames must live as long as this.
//
// Example:
//   FrameJson frames;
//   frames.AppendStack(report.FramesOf(row), &object.Value("frames"));
#ifndef CADASTRE_REPORT_FRAME_JSON_H_
#define CADASTRE_REPORT_FRAME_JSON_H_

#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "symbolizer/profile.h"

namespace cadastre {

class FrameJson {
 public:
  void AppendStack(const std::vector<const Frame*>& frames, std::string* to);

 private:
  const std::string& Of(const Frame* frame);
  absl::node_hash_map<const Frame*, std::string> known_;
  std::vector<const std::string*> texts_;  // of the stack at hand
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FRAME_JSON_H_
