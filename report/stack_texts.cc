#include "report/stack_texts.h"

namespace cadastre {

void StackTexts::Append(uint32_t site, std::string* out) {
  attribution_->FrameNumbersOf(site, &numbers_);
  size_t left_out = separator_.size();  // before the first frame
  for (uint32_t number : numbers_) {
    const Piece& piece = PieceOf(number);
    out->append(texts_, piece.begin + left_out, piece.size - left_out);
    left_out = 0;
  }
}

const StackTexts::Piece& StackTexts::PieceOf(uint32_t number) {
  if (number >= pieces_.size()) pieces_.resize(number + 1);
  Piece& piece = pieces_[number];
  if (piece.size == 0) {
    piece.begin = texts_.size();
    texts_ += separator_;
    append_frame_(attribution_->FrameNumbered(number), &texts_);
    piece.size = texts_.size() - piece.begin;
  }
  return piece;
}

}  // namespace cadastre
