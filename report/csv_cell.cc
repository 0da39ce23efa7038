#include "report/csv_cell.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

bool NeedsQuotes(absl::string_view cell) {
  if (cell.empty()) return false;
  if (cell[0] == '#' || IsBlank(cell.front()) || IsBlank(cell.back())) return true;
  // One character after the other: a stack has kilobytes, and memchr takes a line of them at a time.
  for (char c : {',', '"', '\r', '\n'}) {
    if (cell.find(c) != absl::string_view::npos) return true;
  }
  return false;
}

}  // namespace

void MakeCsvCell(size_t begin, std::string* out) {
  const absl::string_view cell = absl::string_view(*out).substr(begin);
  if (!NeedsQuotes(cell)) return;
  const std::string quoted = absl::StrCat("\"", absl::StrReplaceAll(cell, {{"\"", "\"\""}}), "\"");
  out->replace(begin, std::string::npos, quoted);
}

std::string CsvCell(const std::string& cell) {
  std::string text = ValidUtf8(cell);
  MakeCsvCell(0, &text);
  return text;
}

}  // namespace cadastre
