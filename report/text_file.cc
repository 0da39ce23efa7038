#include "report/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

absl::StatusOr<TextFile> TextFile::Open(const std::string& path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return absl::NotFoundError(absl::StrCat(path, ": cannot open: ", strerror(errno)));
  return TextFile(path, descriptor);
}

TextFile::TextFile(TextFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      end_(other.end_),
      searched_(other.searched_),
      at_end_(other.at_end_),
      line_(other.line_),
      line_number_(other.line_number_),
      status_(std::move(other.status_)) {}

TextFile::~TextFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::Status TextFile::Error(const std::string& what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ":", line_number_, ": ", what));
}

bool TextFile::Fill() {
  if (begin_ > 0) {
    memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (buffer_.size() - end_ < kReadBytes) buffer_.resize(end_ + kReadBytes);
  ssize_t got;
  do {
    got = read(descriptor_, buffer_.data() + end_, kReadBytes);
  } while (got < 0 && errno == EINTR);
  if (got < 0) status_ = absl::InvalidArgumentError(absl::StrCat(path_, ": cannot read: ", strerror(errno)));
  at_end_ = got <= 0;
  if (got > 0) end_ += static_cast<size_t>(got);
  return got > 0;
}

bool TextFile::Next() {
  if (!status_.ok()) return false;
  const char* newline = nullptr;
  while (true) {
    newline = static_cast<const char*>(memchr(buffer_.data() + begin_ + searched_, '\n', end_ - begin_ - searched_));
    if (newline != nullptr || at_end_) break;
    searched_ = end_ - begin_;
    if (searched_ > kMaxTextLineBytes) break;
    if (!Fill() && !status_.ok()) return false;
  }
  searched_ = 0;
  if (newline == nullptr && begin_ == end_) return false;
  size_t length = newline == nullptr ? end_ - begin_ : static_cast<size_t>(newline - buffer_.data()) - begin_;
  line_ = std::string_view(buffer_.data() + begin_, length);
  begin_ += length + (newline == nullptr ? 0 : 1);
  line_number_++;
  if (line_number_ == 1 && line_.substr(0, kByteOrderMark.size()) == kByteOrderMark)
    line_.remove_prefix(kByteOrderMark.size());
  if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
  if (line_.size() > kMaxTextLineBytes) {
    status_ = Error(absl::StrCat("line longer than ", kMaxTextLineBytes, " bytes"));
  } else if (memchr(line_.data(), '\0', line_.size()) != nullptr) {
    status_ = Error("NUL byte: this is no text in UTF-8");
  }
  return status_.ok();
}

absl::StatusOr<std::string_view> TextFile::Peek(size_t bytes) {
  while (!at_end_ && end_ - begin_ < bytes) Fill();
  if (!status_.ok()) return status_;
  return std::string_view(buffer_.data() + begin_, std::min(bytes, end_ - begin_));
}

}  // namespace cadastre
