#include "report/csv_cell.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

bool IsSpecial(char c) { return c == ',' || c == '"' || c == '\r' || c == '\n'; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

std::string CsvCell(const std::string& cell) {
  std::string text = ValidUtf8(cell);
  // No branch: a stack has kilobytes.
  const auto special = std::count_if(text.begin(), text.end(), IsSpecial);
  const bool kept = text.empty() || (text[0] != '#' && !IsBlank(text.front()) && !IsBlank(text.back()));
  if (special == 0 && kept) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace cadastre
