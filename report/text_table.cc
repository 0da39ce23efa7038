#include "report/text_table.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

constexpr size_t kColumnGap = 2;
constexpr size_t kMinShrunk = 8;

char32_t CodePoint(absl::string_view sequence) {
  constexpr unsigned char kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = static_cast<unsigned char>(sequence[0]) & kLeadBits[sequence.size()];
  for (char c : sequence.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3F);
  return code;
}

// Columns of one sequence: 2 for East Asian wide characters and most emoji, 0 for combining ones. The widths are those
// of glibc's C.UTF-8, whatever the user's locale is, so a report is the same everywhere.
size_t SequenceWidth(absl::string_view sequence) {
  static const locale_t kUnicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  if (sequence.size() < 2 || kUnicode == nullptr) return 1;
  locale_t before = uselocale(kUnicode);  // of this thread
  int width = wcwidth(static_cast<wchar_t>(CodePoint(sequence)));
  uselocale(before);
  return width < 0 ? 1 : width;
}

// Calls visit(begin, bytes, columns) for each character; a broken byte is one of one column. Stops where visit says so.
template <typename Visit>
void ForEachCharacter(absl::string_view text, Visit visit) {
  for (size_t at = 0; at < text.size();) {
    size_t length = std::max<size_t>(Utf8Length(text, at), 1);
    if (!visit(at, length, SequenceWidth(text.substr(at, length)))) return;
    at += length;
  }
}

// As many characters as `width` columns hold, with the combining ones that follow.
absl::string_view Head(absl::string_view text, size_t width) {
  size_t end = 0, used = 0;
  ForEachCharacter(text, [&](size_t at, size_t length, size_t columns) {
    used += columns;
    if (used <= width) end = at + length;
    return used <= width;
  });
  return text.substr(0, end);
}

// The last ones, beginning with a character that is not combined with what is cut away.
absl::string_view Tail(absl::string_view text, size_t width) {
  size_t left = DisplayWidth(text), begin = text.size();
  ForEachCharacter(text, [&](size_t at, size_t, size_t columns) {
    if (left <= width && columns > 0) begin = at;
    left -= columns;
    return begin == text.size();
  });
  return text.substr(begin);
}

// Marks that turn the direction of what follows (U+200E, U+200F, U+202A..E, U+2066..9), and line separators.
bool ReordersText(absl::string_view sequence) {
  if (sequence.size() != 3) return false;
  char32_t code = CodePoint(sequence);
  return code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string Paint(bool colour, const char* code, absl::string_view text) {
  return colour ? absl::StrCat("\x1b[", code, "m", text, "\x1b[0m") : std::string(text);
}

}  // namespace

std::string TextStyle::Bold(absl::string_view text) const { return Paint(colour, "1", text); }
std::string TextStyle::Warning(absl::string_view text) const { return Paint(colour, "33", text); }
std::string TextStyle::Error(absl::string_view text) const { return Paint(colour, "1;31", text); }
std::string TextStyle::Faint(absl::string_view text) const { return Paint(colour, "2", text); }

TextStyle StyleForDescriptor(int descriptor) {
  const char* no_colour = getenv("NO_COLOR");
  const char* terminal = getenv("TERM");
  TextStyle style;
  style.colour = isatty(descriptor) && (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
                 *terminal != '\0' && strcmp(terminal, "dumb") != 0;
  return style;
}

size_t DisplayWidth(absl::string_view text) {
  size_t width = 0;
  ForEachCharacter(text, [&](size_t, size_t, size_t columns) {
    width += columns;
    return true;
  });
  return width;
}

std::string SafeText(absl::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t length = Utf8Length(text, at);
    unsigned char lead = text[at];
    // C1 controls (U+0080..U+009F, "\xC2\x80".."\xC2\x9F") move the cursor on some terminals as ESC does.
    bool control =
        lead < 0x20 || lead == 0x7F || (lead == 0xC2 && length == 2 && static_cast<unsigned char>(text[at + 1]) < 0xA0);
    if (length == 0 || control || ReordersText(text.substr(at, length))) {
      safe += '?';
      at += std::max<size_t>(length, 1);
    } else {
      absl::StrAppend(&safe, text.substr(at, length));
      at += length;
    }
  }
  return safe;
}

std::string CutEnd(absl::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  return absl::StrCat(Head(text, width - 1), "…");
}

std::string CutMiddle(absl::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width < 3) return CutEnd(text, width);
  size_t tail = (width - 1) / 2;
  return absl::StrCat(Head(text, width - 1 - tail), "…", Tail(text, tail));
}

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = SafeText(cell);
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::Print(size_t width, const TextStyle& style) const {
  std::vector<size_t> widths(columns_.size(), 0);
  for (size_t i = 0; i < columns_.size(); i++) {
    for (const std::vector<std::string>& row : rows_) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
    if (widths[i] > 0 || rows_.empty()) widths[i] = std::max(widths[i], DisplayWidth(columns_[i].heading));
  }
  size_t total = 0;
  for (size_t column : widths) total += column == 0 ? 0 : column + kColumnGap;
  while (total > width + kColumnGap) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); i++) {
      if (columns_[i].may_shrink && widths[i] > kMinShrunk && (widest == columns_.size() || widths[i] > widths[widest]))
        widest = i;
    }
    if (widest == columns_.size()) break;
    widths[widest]--;
    total--;
  }
  auto line_of = [&](auto cell_of) {
    std::string line;
    size_t last = 0;
    for (size_t i = 0; i < columns_.size(); i++) {
      if (widths[i] == 0) continue;
      std::string cell = CutMiddle(cell_of(i), widths[i]);
      size_t padding = widths[i] - DisplayWidth(cell);
      if (!line.empty() || last > 0) line.append(kColumnGap, ' ');
      last++;
      if (columns_[i].align == Align::kRight) line.append(padding, ' ');
      line += cell;
      if (columns_[i].align == Align::kLeft) line.append(padding, ' ');
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    return line;
  };
  std::string out = style.Bold(line_of([&](size_t i) { return columns_[i].heading; })) + "\n";
  for (const std::vector<std::string>& row : rows_) out += line_of([&](size_t i) { return row[i]; }) + "\n";
  return out;
}

std::string MarkdownCell(absl::string_view text) {
  return absl::StrReplaceAll(SafeText(text), {{"|", "\\|"}, {"<", "&lt;"}, {"`", "'"}});
}

}  // namespace cadastre
