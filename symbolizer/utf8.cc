#include "symbolizer/utf8.h"

#include <string.h>

namespace cadastre {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

unsigned ByteAt(absl::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool IsTail(absl::string_view text, size_t at) { return (ByteAt(text, at) & 0xc0) == 0x80; }

// The surrogate that three bytes at `at` stand for; 0 = none.
uint32_t SurrogateAt(absl::string_view text, size_t at) {
  if (ByteAt(text, at) != 0xed || ByteAt(text, at + 1) < 0xa0 || !IsTail(text, at + 1) || !IsTail(text, at + 2))
    return 0;
  return 0xd000 | (ByteAt(text, at + 1) & 0x3f) << 6 | (ByteAt(text, at + 2) & 0x3f);
}

// Of the ASCII characters from `at` on.
size_t AsciiLength(absl::string_view text, size_t at) {
  const size_t begin = at;
  for (uint64_t word = 0; at + sizeof(word) <= text.size(); at += sizeof(word)) {
    memcpy(&word, text.data() + at, sizeof(word));
    if ((word & 0x8080808080808080) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) at++;
  return at - begin;
}

bool IsHigh(uint32_t surrogate) { return surrogate >= 0xd800 && surrogate < 0xdc00; }
bool IsLow(uint32_t surrogate) { return surrogate >= 0xdc00; }

}  // namespace

size_t Utf8Length(absl::string_view text, size_t at) {
  const unsigned lead = ByteAt(text, at), second = ByteAt(text, at + 1);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return IsTail(text, at + 1) ? 2 : 0;
  if (lead >= 0xe0 && lead < 0xf0) {
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second >= 0xa0)) return 0;
    return IsTail(text, at + 1) && IsTail(text, at + 2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead < 0xf5) {
    if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90)) return 0;
    return IsTail(text, at + 1) && IsTail(text, at + 2) && IsTail(text, at + 3) ? 4 : 0;
  }
  return 0;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xc0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xe0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | code >> 18);
    *out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

std::string ValidUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    // Nearly all text is ASCII, and a stack has kilobytes of it.
    const size_t ascii = AsciiLength(text, at);
    const size_t length = ascii > 0 ? ascii : Utf8Length(text, at);
    if (length == 0) {
      AppendUtf8(kReplacement, &out);
      at++;
    } else {
      out.append(text.data() + at, length);
      at += length;
    }
  }
  return out;
}

std::string FromModifiedUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const uint32_t surrogate = SurrogateAt(text, at), next = surrogate == 0 ? 0 : SurrogateAt(text, at + 3);
    if (IsHigh(surrogate) && IsLow(next)) {
      AppendUtf8(0x10000 + ((surrogate & 0x3ff) << 10) + (next & 0x3ff), &out);
      at += 6;
    } else if (surrogate != 0) {
      AppendUtf8(kReplacement, &out);
      at += 3;
    } else if (ByteAt(text, at) == 0xc0 && ByteAt(text, at + 1) == 0x80) {
      AppendUtf8(kReplacement, &out);  // U+0000 ends a text for most who read it
      at += 2;
    } else {
      const size_t length = Utf8Length(text, at);
      if (length == 0) AppendUtf8(kReplacement, &out);
      out.append(text.data() + at, length);
      at += length == 0 ? 1 : length;
    }
  }
  return out;
}

}  // namespace cadastre
