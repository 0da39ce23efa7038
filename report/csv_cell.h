// One cell of a CSV file that others read (RFC 4180), and that our own rules reader takes for what it is.
//
// Thread-safety: pure. Errors: none.
//
// Example: CsvCell("core, the team") == "\"core, the team\""
#ifndef CADASTRE_REPORT_CSV_CELL_H_
#define CADASTRE_REPORT_CSV_CELL_H_

#include <cstddef>
#include <string>

namespace cadastre {

// In quotes where it has a comma, a quote or a line end, begins with '#' (a comment), or has blanks at an end
// (dropped).
// Bytes that are not UTF-8 become U+FFFD.
std::string CsvCell(const std::string& text);

// What stands in `out` from `begin` on, valid UTF-8, becomes such a cell.
void MakeCsvCell(size_t begin, std::string* out);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CSV_CELL_H_
