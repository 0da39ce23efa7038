// A stack in one line, and whether two would read the same.
//
// Thread-safety: pure. Errors: none.
//
// Example: StackLine(report.FramesOf(row), row.owner_frame, row.telling_frame, 90)
//   → "deflateInit2_ (libz.so.1) < … < Deflater.init < com.acme.InvoicePdf.compress (InvoicePdf.java:88)"
#ifndef CADASTRE_REPORT_STACK_LINE_H_
#define CADASTRE_REPORT_STACK_LINE_H_

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/types/span.h"
#include "symbolizer/profile.h"

namespace cadastre {

// How many frames from the leaf a line is made of: to the owner, else to the frame that says most, else all. -1 = none.
size_t ShownFrames(size_t frames, int owner_frame, int telling_frame);

// "f (libz.so.1) < g < h": from the leaf to the owner, without the middle where the line would be wider than `width`
// columns.
std::string StackLine(const std::vector<const Frame*>& frames, int owner_frame, int telling_frame, size_t width);

// Names of frames as lines have them, each made once: most frames of a stack are those of others. Names live as long
// as this. Not thread-safe; no frame may lie where one was that has gone.
class FrameNames {
 public:
  struct Name {
    std::string text;
    size_t width = 0;  // columns
  };
  // `passed`: between what allocated and the owner.
  const Name& Of(const Frame* frame, bool passed);
  // No frame's, and printed as it is, however wide.
  const Name* OfText(std::string text);

 private:
  absl::node_hash_map<const Frame*, Name> whole_, passed_;
  std::deque<Name> texts_;
};

// StackLine in two steps: the names, which outlive the frames, and the line.
void AppendLineNames(const std::vector<const Frame*>& frames, int owner_frame, int telling_frame, FrameNames* known,
                     std::vector<const FrameNames::Name*>* names);
std::string LineOf(absl::Span<const FrameNames::Name* const> names, size_t width);

// Calls from two lines of a function that has no line numbers are two sites that read the same. `shown`: ShownFrames of
// each.
bool ReadTheSame(const std::vector<const Frame*>& left, size_t left_shown, const std::vector<const Frame*>& right,
                 size_t right_shown);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_STACK_LINE_H_
