// Stacks as lines that are made when somebody asks: of 100,000 sites that are compared some ten are printed.
//
// A SiteLine is small and keeps what it is made of; frames need not live longer than SiteLines::Of. Errors: none.
// Thread-safety: not thread-safe.
//
// Example:
//   SiteLines lines(160);
//   SiteLine line = lines.Of(report.FramesOf(row), row.owner_frame, row.telling_frame);
//   Print(line.Text());
#ifndef CADASTRE_REPORT_SITE_LINES_H_
#define CADASTRE_REPORT_SITE_LINES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "report/stack_line.h"

namespace cadastre {

class SiteLine {
 public:
  SiteLine() = default;                 // ""
  explicit SiteLine(std::string text);  // one that was printed before
  std::string Text() const;

 private:
  friend class SiteLines;
  struct Names {
    FrameNames known;
    std::vector<const FrameNames::Name*> on_lines;
    size_t width = 0;
  };
  SiteLine(std::shared_ptr<const Names> names, size_t begin, size_t count)
      : names_(std::move(names)), begin_(static_cast<uint32_t>(begin)), count_(static_cast<uint32_t>(count)) {}

  std::shared_ptr<const Names> names_;
  uint32_t begin_ = 0, count_ = 0;  // in on_lines
};

// Lines of one report, at most `width` columns each.
class SiteLines {
 public:
  explicit SiteLines(size_t width) : names_(std::make_shared<SiteLine::Names>()) { names_->width = width; }
  SiteLine Of(const std::vector<const Frame*>& frames, int owner_frame, int telling_frame);

 private:
  std::shared_ptr<SiteLine::Names> names_;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_SITE_LINES_H_
