#include "report/site_lines.h"

namespace cadastre {

SiteLine::SiteLine(std::string text) {
  auto names = std::make_shared<Names>();
  names->on_lines.push_back(names->known.OfText(std::move(text)));
  names_ = std::move(names);
  count_ = 1;
}

std::string SiteLine::Text() const {
  if (names_ == nullptr) return "";
  return LineOf({names_->on_lines.data() + begin_, count_}, names_->width);
}

SiteLine SiteLines::Of(const std::vector<const Frame*>& frames, int owner_frame, int telling_frame) {
  const size_t begin = names_->on_lines.size();
  AppendLineNames(frames, owner_frame, telling_frame, &names_->known, &names_->on_lines);
  return SiteLine(names_, begin, names_->on_lines.size() - begin);
}

}  // namespace cadastre
