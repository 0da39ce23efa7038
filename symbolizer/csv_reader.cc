#include "symbolizer/csv_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cadastre {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

absl::Status CsvError(const std::string& file, int line, int column, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ":", line, ":", column, ": ", what));
}

CsvReader::CsvReader(std::string file, uint64_t max_line_bytes, std::function<absl::Status(const CsvRecord&)> take)
    : file_(std::move(file)), max_line_bytes_(max_line_bytes), take_(std::move(take)) {}

absl::Status CsvReader::Feed(std::string_view bytes) {
  for (char byte : bytes) {
    if (absl::Status status = TakeByte(static_cast<uint8_t>(byte)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CsvReader::Finish() {
  if (continuation_left_ > 0) return CsvError(file_, line_, column_ - 1, "not UTF-8: the file ends inside a character");
  if (state_ == State::kQuoted) return CsvError(file_, quote_line_, quote_column_, "unterminated quote");
  return EndRecord();
}

absl::Status CsvReader::TakeByte(uint8_t byte) {
  constexpr uint8_t kByteOrderMark[3] = {0xef, 0xbb, 0xbf};
  uint64_t at = total_bytes_++;
  if (byte == 0) return Error("NUL byte");
  if (absl::Status status = CheckUtf8(byte); !status.ok()) return status;
  if (++record_bytes_ > max_line_bytes_) {
    return Error(absl::StrCat("line longer than ", max_line_bytes_, " bytes"));
  }
  // The mark is one character at the very beginning. Its bytes wait in the field until it is whole.
  bool continues = byte >= 0x80 && byte < 0xc0;
  if (absl::Status status = TakeCharacter(byte); !status.ok()) return status;
  if (at == 2 && field_.text == std::string(reinterpret_cast<const char*>(kByteOrderMark), 3)) {
    state_ = State::kRecordStart;
    record_ = {};
    field_ = {};
    column_ = 1;
    return absl::OkStatus();
  }
  if (byte == '\n') {
    line_++;
    column_ = 1;
  } else if (!continues) {
    column_++;
  }
  return absl::OkStatus();
}

absl::Status CsvReader::CheckUtf8(uint8_t byte) {
  if (continuation_left_ > 0) {
    if (byte < continuation_low_ || byte > continuation_high_) {
      return CsvError(file_, line_, column_ - 1, absl::StrFormat("not UTF-8: byte 0x%02x inside a character", byte));
    }
    continuation_left_--;
    continuation_low_ = 0x80;
    continuation_high_ = 0xbf;
    return absl::OkStatus();
  }
  if (byte < 0x80) return absl::OkStatus();
  if (byte < 0xc2 || byte > 0xf4) return Error(absl::StrFormat("not UTF-8: byte 0x%02x", byte));
  continuation_left_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  if (byte == 0xe0) continuation_low_ = 0xa0;
  if (byte == 0xed) continuation_high_ = 0x9f;
  if (byte == 0xf0) continuation_low_ = 0x90;
  if (byte == 0xf4) continuation_high_ = 0x8f;
  return absl::OkStatus();
}

absl::Status CsvReader::TakeCharacter(uint8_t byte) {
  char c = static_cast<char>(byte);
  if (state_ == State::kComment) {
    if (c == '\n') return EndRecord();
    if (take_comment_ != nullptr) field_.text += c;
    return absl::OkStatus();
  }
  if (state_ == State::kQuoted) {
    if (c == '"') {
      state_ = State::kAfterQuote;
    } else {
      field_.text += c;
    }
    return absl::OkStatus();
  }
  if (carriage_return_ && c != '\n') return Error("carriage return inside a line");
  if (c == '\n') return EndRecord();
  if (c == '\r') {
    carriage_return_ = true;
    return absl::OkStatus();
  }
  if (state_ == State::kRecordStart) {
    if (IsBlank(c)) return absl::OkStatus();
    record_.line = line_;
    if (c == '#') {
      state_ = State::kComment;
      return absl::OkStatus();
    }
    state_ = State::kFieldStart;
  }
  if (c == ',') {
    if (state_ == State::kFieldStart) BeginField();
    EndField();
    state_ = State::kFieldStart;
    return absl::OkStatus();
  }
  switch (state_) {
    case State::kFieldStart:
      if (IsBlank(c)) return absl::OkStatus();
      BeginField();
      if (c == '"') {
        quote_line_ = line_;
        quote_column_ = column_;
        state_ = State::kQuoted;
        return absl::OkStatus();
      }
      state_ = State::kUnquoted;
      field_.text += c;
      return absl::OkStatus();
    case State::kAfterQuote:
      if (c == '"') {
        field_.text += c;  // "" inside quotes
        state_ = State::kQuoted;
        return absl::OkStatus();
      }
      state_ = State::kClosed;
      [[fallthrough]];
    case State::kClosed:
      if (IsBlank(c)) return absl::OkStatus();
      return Error("text after a closing quote; write \"\" for a quote inside quotes");
    default:
      if (c == '"') return Error("quote inside an unquoted field; put the whole field in quotes and write \"\"");
      field_.text += c;
      return absl::OkStatus();
  }
}

void CsvReader::BeginField() { field_ = {"", line_, column_}; }

void CsvReader::EndField() {
  if (state_ != State::kAfterQuote && state_ != State::kClosed) {
    while (!field_.text.empty() && IsBlank(field_.text.back())) field_.text.pop_back();
  }
  record_.fields.push_back(std::move(field_));
  field_ = {};
}

absl::Status CsvReader::EndRecord() {
  bool comment = state_ == State::kComment;
  bool anything = state_ != State::kRecordStart && !comment;
  if (anything) {
    if (state_ == State::kFieldStart) BeginField();
    EndField();
  }
  CsvRecord record = std::exchange(record_, {});
  record.end_line = line_;
  record.end_column = column_ - (carriage_return_ ? 1 : 0);
  state_ = State::kRecordStart;
  record_bytes_ = 0;
  carriage_return_ = false;
  if (comment && take_comment_ != nullptr) {
    std::string text = std::exchange(field_.text, "");
    return take_comment_(text, record.line);
  }
  return anything ? take_(record) : absl::OkStatus();
}

}  // namespace cadastre
