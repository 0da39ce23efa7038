// Text for terminals: aligned tables, safe names, colour.
//
// Widths are columns of a terminal: a Chinese character has two, a combining accent none. No name that comes from a
// profile can move the cursor or change the colours. Thread-safety: plain values.
//
// Example:
//   TextTable table({{"MODULE"}, {"LIVE", Align::kRight}});
//   table.AddRow({"billing", "2 GiB"});
//   out += table.Print(/*width=*/110, style);
#ifndef CADASTRE_REPORT_TEXT_TABLE_H_
#define CADASTRE_REPORT_TEXT_TABLE_H_

#include <string>
#include <vector>
#include "absl/strings/string_view.h"

namespace cadastre {

inline constexpr size_t kTextWidth = 110;

struct TextStyle {
  bool colour = false;
  std::string Bold(absl::string_view text) const;
  std::string Warning(absl::string_view text) const;  // yellow
  std::string Error(absl::string_view text) const;    // red
  std::string Faint(absl::string_view text) const;
};

// Colour where the stream is a terminal that has it: TERM is set and not "dumb", NO_COLOR (https://no-color.org) is
// empty or not set.
TextStyle StyleForDescriptor(int descriptor);

enum class Align { kLeft, kRight };

struct Column {
  std::string heading;
  Align align = Align::kLeft;
  bool may_shrink = false;  // cut with "…" if the table is too wide
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);
  void AddRow(std::vector<std::string> cells);  // as many as there are columns
  // Columns whose cells are all empty are left out.
  std::string Print(size_t width, const TextStyle& style) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

size_t DisplayWidth(absl::string_view text);  // columns

// Control characters, marks that reorder text, and broken UTF-8 become "?".
std::string SafeText(absl::string_view text);

// The same as one cell of a Markdown table.
std::string MarkdownCell(absl::string_view text);

// Cut to `width` columns with "…" at the end, or in the middle (for names whose end tells them apart).
std::string CutEnd(absl::string_view text, size_t width);
std::string CutMiddle(absl::string_view text, size_t width);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_TEXT_TABLE_H_
