// Stacks of a report as text, for formats that print every site: the text of each frame is made once, because most
// stacks share most of theirs, and a stack is what these make when copied one behind the other.
//
// Errors: none. Thread-safety: not thread-safe; the attribution must outlive this.
//
// Example:
//   StackTexts stacks(attribution, ";", [](const Frame& frame, std::string* out) { out->append(frame.function); });
//   stacks.Append(row.site, &line);   // "deflateInit2_;Deflater.init;com.acme.InvoicePdf.compress"
#ifndef CADASTRE_REPORT_STACK_TEXTS_H_
#define CADASTRE_REPORT_STACK_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/attribution.h"

namespace cadastre {

class StackTexts {
 public:
  // `append_frame` appends one frame's text.
  using AppendFrame = std::function<void(const Frame& frame, std::string* out)>;
  StackTexts(Attribution* attribution, absl::string_view separator, AppendFrame append_frame)
      : attribution_(attribution), separator_(separator), append_frame_(std::move(append_frame)) {}

  // Leaf first.
  void Append(uint32_t site, std::string* out);

 private:
  // Of one frame, the separator before it included; in texts_.
  struct Piece {
    size_t begin = 0, size = 0;  // 0 bytes: not made yet
  };
  const Piece& PieceOf(uint32_t number);

  Attribution* attribution_;
  std::string separator_;
  AppendFrame append_frame_;
  std::string texts_;
  std::vector<Piece> pieces_;      // by frame's number
  std::vector<uint32_t> numbers_;  // of the stack at hand
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_STACK_TEXTS_H_
