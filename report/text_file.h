// Lines of text files that may be larger than memory.
//
// A line has no line end ("\n" or "\r\n"); a byte order mark at the beginning is passed over. Errors: a Status
// "FILE:LINE: what" or "FILE: cannot open: ..."; NUL bytes and lines longer than kMaxTextLineBytes are errors. Memory:
// one chunk and the longest line. Thread-safety: none.
//
// Example:
//   absl::StatusOr<TextFile> file = TextFile::Open("stacks.txt");
//   while (file->Next()) Use(file->line());
//   return file->status();
#ifndef CADASTRE_REPORT_TEXT_FILE_H_
#define CADASTRE_REPORT_TEXT_FILE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cadastre {

inline constexpr size_t kMaxTextLineBytes = 8 << 20;

class TextFile {
 public:
  static absl::StatusOr<TextFile> Open(const std::string& path);
  TextFile(TextFile&& other) noexcept;
  TextFile& operator=(TextFile&&) = delete;
  ~TextFile();

  // False at the end and after an error.
  bool Next();
  std::string_view line() const { return line_; }        // until the next call of Next
  uint64_t line_number() const { return line_number_; }  // from 1
  const absl::Status& status() const { return status_; }

  // "FILE:LINE: what", about the line that was read last.
  absl::Status Error(const std::string& what) const;

  // What stands first in the file, at most `bytes` of it. Only before the first Next.
  absl::StatusOr<std::string_view> Peek(size_t bytes);

 private:
  TextFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  bool Fill();  // false: nothing more could be read

  std::string path_;
  int descriptor_;
  std::vector<char> buffer_;
  size_t begin_ = 0, end_ = 0;  // in the buffer: what has been read and not been given out
  size_t searched_ = 0;         // of that: known to have no line end
  bool at_end_ = false;
  std::string_view line_;
  uint64_t line_number_ = 0;
  absl::Status status_;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_TEXT_FILE_H_
