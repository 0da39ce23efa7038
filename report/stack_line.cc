#include "report/stack_line.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/function_name.h"
#include "report/text_table.h"

namespace cadastre {

size_t ShownFrames(size_t frames, int owner_frame, int telling_frame) {
  const int end = owner_frame >= 0 ? owner_frame : telling_frame;
  return end >= 0 ? std::min(static_cast<size_t>(end) + 1, frames) : frames;
}

std::string StackLine(const std::vector<const Frame*>& frames, int owner_frame, int telling_frame, size_t width) {
  std::vector<std::string> names;
  if (frames.size() == 1 && absl::StartsWith(frames[0]->function, "[")) return frames[0]->function;
  const size_t last = ShownFrames(frames.size(), owner_frame, telling_frame);
  for (size_t i = 0; i < last; i++) {
    bool passed = i > 0 && i + 1 < last;
    // Says what its Java method, the next frame, says.
    if (passed && !frames[i]->java && frames[i + 1]->java && absl::StartsWith(frames[i]->function, "Java_")) continue;
    std::string name = SafeText(passed ? PassedFrame(*frames[i]) : ShortFrame(*frames[i]));
    // Constructors and methods that call their namesakes.
    if (passed && name == names.back()) continue;
    names.push_back(std::move(name));
  }
  if (names.empty()) return "[no stack]";
  std::string full = absl::StrJoin(names, " < ");
  if (DisplayWidth(full) <= width) return full;
  // The owner says most, then what allocated, then the owner's neighbours.
  std::string owner = names.back();
  std::string leaf = names.front();
  if (names.size() == 1) return CutMiddle(owner, width);
  // What the owner called tells more than the library of what allocated.
  if (names.size() > 2) {
    std::string bare = leaf.substr(0, leaf.find(" ("));
    size_t rest = DisplayWidth(absl::StrCat(" < … < ", names[names.size() - 2], " < ", owner));
    if (DisplayWidth(leaf) + rest > width && DisplayWidth(bare) + rest <= width) leaf = bare;
  }
  size_t half = (width - 7) / 2;
  if (names.size() == 2) return absl::StrCat(CutMiddle(leaf, half), " < ", CutMiddle(owner, half + 4));
  leaf = CutMiddle(leaf, std::min(half, std::max<size_t>(half, width - 9 - std::min(width - 9, DisplayWidth(owner)))));
  owner = CutMiddle(owner, width - DisplayWidth(leaf) - 7);
  std::string line = absl::StrCat(" < ", owner);
  size_t used = DisplayWidth(leaf) + 4 + DisplayWidth(line);  // " < …"
  for (size_t i = names.size() - 2; i > 0; i--) {
    if (used + 3 + DisplayWidth(names[i]) > width) break;
    used += 3 + DisplayWidth(names[i]);
    line = absl::StrCat(" < ", names[i], line);
  }
  return absl::StrCat(leaf, " < …", line);
}

bool ReadTheSame(const std::vector<const Frame*>& left, size_t left_shown, const std::vector<const Frame*>& right,
                 size_t right_shown) {
  if (left_shown != right_shown) return false;
  return std::equal(left.begin(), left.begin() + static_cast<ptrdiff_t>(left_shown), right.begin(),
                    [](const Frame* x, const Frame* y) {
                      return x->function == y->function && x->library == y->library && x->file == y->file &&
                             x->line == y->line;
                    });
}

}  // namespace cadastre
