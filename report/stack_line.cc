#include "report/stack_line.h"

#include <algorithm>
#include <utility>

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

const FrameNames::Name& FrameNames::Of(const Frame* frame, bool passed) {
  auto [known, is_new] = (passed ? passed_ : whole_).try_emplace(frame);
  Name& name = known->second;
  if (is_new) {
    name.text = SafeText(passed ? PassedFrame(*frame) : ShortFrame(*frame));
    name.width = DisplayWidth(name.text);
  }
  return name;
}

const FrameNames::Name* FrameNames::OfText(std::string text) { return &texts_.emplace_back(std::move(text), 0); }

void AppendLineNames(const std::vector<const Frame*>& frames, int owner_frame, int telling_frame, FrameNames* known,
                     std::vector<const FrameNames::Name*>* names) {
  if (frames.size() == 1 && absl::StartsWith(frames[0]->function, "[")) {
    names->push_back(known->OfText(frames[0]->function));
    return;
  }
  const size_t begin = names->size(), last = ShownFrames(frames.size(), owner_frame, telling_frame);
  for (size_t i = 0; i < last; i++) {
    const bool passed = i > 0 && i + 1 < last;
    // Says what its Java method, the next frame, says.
    if (passed && !frames[i]->java && frames[i + 1]->java && absl::StartsWith(frames[i]->function, "Java_")) continue;
    const FrameNames::Name& name = known->Of(frames[i], passed);
    // Constructors and methods that call their namesakes.
    if (passed && name.text == names->back()->text) continue;
    names->push_back(&name);
  }
  if (names->size() == begin) names->push_back(known->OfText("[no stack]"));
}

std::string LineOf(absl::Span<const FrameNames::Name* const> names, size_t width) {
  constexpr absl::string_view kCall = " < ";
  size_t full = kCall.size() * (names.size() - 1);
  for (const FrameNames::Name* name : names) full += name->width;
  if (full <= width) {
    return absl::StrJoin(names, kCall, [](std::string* out, const FrameNames::Name* name) { out->append(name->text); });
  }
  // The owner says most, then what allocated, then the owner's neighbours.
  std::string owner = names.back()->text;
  std::string leaf = names.front()->text;
  if (names.size() == 1) return CutMiddle(owner, width);
  // What the owner called tells more than the library of what allocated.
  if (names.size() > 2) {
    std::string bare = leaf.substr(0, leaf.find(" ("));
    size_t rest = DisplayWidth(" < … < ") + names[names.size() - 2]->width + kCall.size() + names.back()->width;
    if (names.front()->width + rest > width && DisplayWidth(bare) + rest <= width) leaf = bare;
  }
  size_t half = (width - 7) / 2;
  if (names.size() == 2) return absl::StrCat(CutMiddle(leaf, half), kCall, CutMiddle(owner, half + 4));
  leaf = CutMiddle(leaf, std::min(half, std::max<size_t>(half, width - 9 - std::min(width - 9, names.back()->width))));
  owner = CutMiddle(owner, width - DisplayWidth(leaf) - 7);
  std::string line = absl::StrCat(kCall, owner);
  size_t used = DisplayWidth(leaf) + 4 + DisplayWidth(line);  // " < …"
  for (size_t i = names.size() - 2; i > 0; i--) {
    if (used + kCall.size() + names[i]->width > width) break;
    used += kCall.size() + names[i]->width;
    line = absl::StrCat(kCall, names[i]->text, line);
  }
  return absl::StrCat(leaf, " < …", line);
}

std::string StackLine(const std::vector<const Frame*>& frames, int owner_frame, int telling_frame, size_t width) {
  FrameNames known;
  std::vector<const FrameNames::Name*> names;
  AppendLineNames(frames, owner_frame, telling_frame, &known, &names);
  return LineOf(names, width);
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
