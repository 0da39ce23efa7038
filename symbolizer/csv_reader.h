// RFC 4180 records from bytes that come in chunks, with the place of every field, for files that people write by hand.
//
// Accepted beside the RFC: `#` comment lines, blank lines, CRLF, a byte order mark, blanks around fields. Refused: NUL
// bytes, bytes that are not UTF-8, unterminated quotes, a quote inside an unquoted field, lines (and quoted records)
// longer than max_line_bytes. Units: lines and columns count from 1; a column is a character, not a byte. Errors: Feed
// and Finish return a Status "FILE:LINE:COLUMN: what"; after the first error the reader is of no more use.
// Thread-safety: none.
//
// Example:
//   CsvReader reader("owners.csv", 1 << 20, [&](const CsvRecord& record) { return Use(record); });
//   while (Read(&chunk)) if (absl::Status status = reader.Feed(chunk); !status.ok()) return status;
//   return reader.Finish();
#ifndef CADASTRE_SYMBOLIZER_CSV_READER_H_
#define CADASTRE_SYMBOLIZER_CSV_READER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace cadastre {

struct CsvField {
  std::string text;
  int line = 0, column = 0;
};

struct CsvRecord {
  std::vector<CsvField> fields;
  int line = 0;                      // where it begins
  int end_line = 0, end_column = 0;  // one past its last character
};

// "FILE:LINE:COLUMN: what"
absl::Status CsvError(const std::string& file, int line, int column, const std::string& what);

class CsvReader {
 public:
  // `take` is called for each record that is neither blank nor a comment; its error ends the reading.
  CsvReader(std::string file, uint64_t max_line_bytes, std::function<absl::Status(const CsvRecord&)> take);

  // Called for each comment line with what follows the '#'; its error ends the reading. Not set: comments are dropped.
  void set_take_comment(std::function<absl::Status(std::string_view text, int line)> take) {
    take_comment_ = std::move(take);
  }

  absl::Status Feed(std::string_view bytes);
  absl::Status Finish();

 private:
  enum class State { kRecordStart, kFieldStart, kUnquoted, kQuoted, kAfterQuote, kClosed, kComment };

  absl::Status TakeByte(uint8_t byte);
  absl::Status TakeCharacter(uint8_t byte);
  absl::Status CheckUtf8(uint8_t byte);
  absl::Status EndRecord();
  void BeginField();
  void EndField();
  absl::Status Error(const std::string& what) const { return CsvError(file_, line_, column_, what); }

  std::string file_;
  uint64_t max_line_bytes_;
  std::function<absl::Status(const CsvRecord&)> take_;
  std::function<absl::Status(std::string_view, int)> take_comment_;
  State state_ = State::kRecordStart;
  CsvRecord record_;
  CsvField field_;
  uint64_t record_bytes_ = 0;
  uint64_t total_bytes_ = 0;
  int line_ = 1, column_ = 1;
  int quote_line_ = 0, quote_column_ = 0;
  bool carriage_return_ = false;  // the last character was one; the end of a line must follow
  // UTF-8: continuation bytes still to come, and the range that the next one must be in (it excludes overlong forms and
  // surrogates).
  int continuation_left_ = 0;
  uint8_t continuation_low_ = 0x80, continuation_high_ = 0xbf;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_CSV_READER_H_
