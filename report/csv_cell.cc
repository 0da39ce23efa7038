#include "report/csv_cell.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "symbolizer/utf8.h"

namespace cadastre {

std::string CsvCell(const std::string& cell) {
  const std::string text = ValidUtf8(cell);
  auto blank = [](char c) { return c == ' ' || c == '\t'; };
  bool plain = text.find_first_of(",\"\r\n") == std::string::npos;
  bool kept = text.empty() || (text[0] != '#' && !blank(text.front()) && !blank(text.back()));
  return plain && kept ? text : absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace cadastre
