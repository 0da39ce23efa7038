// Collapsed stacks: one stack a line, "root;...;leaf COUNT", as Brendan Gregg's FlameGraph reads it.
//
// Frames may contain blanks; what follows the last blank or tab is the count, a whole number. Blank lines are passed
// over. Errors: "FILE:LINE: what". Memory: bounded, whatever the file's size. Thread-safety: none.
//
// Example:
//   absl::Status status = ReadCollapsedStacks("stacks.txt", [](const CollapsedStack& stack) { ... });
#ifndef CADASTRE_REPORT_COLLAPSED_STACKS_H_
#define CADASTRE_REPORT_COLLAPSED_STACKS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace cadastre {

class CollapsedStack {
 public:
  CollapsedStack(std::string_view frames, uint64_t count) : frames_(frames), count_(count) {}

  uint64_t count() const { return count_; }

  // The frames from the leaf outwards, one with each call; empty: there are no more.
  std::string_view TakeLeaf() {
    size_t semicolon = frames_.rfind(';');
    std::string_view leaf = semicolon == std::string_view::npos ? frames_ : frames_.substr(semicolon + 1);
    frames_ = semicolon == std::string_view::npos ? std::string_view() : frames_.substr(0, semicolon);
    return leaf;
  }

 private:
  std::string_view frames_;
  uint64_t count_;
};

// `take` is called for each line; its error ends the reading and is given the line's place.
absl::Status ReadCollapsedStacks(const std::string& path, const std::function<absl::Status(CollapsedStack)>& take);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_COLLAPSED_STACKS_H_
