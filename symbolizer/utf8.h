// UTF-8 (RFC 3629) as it should be, and what names have instead of it.
//
// A JVM keeps its names in "modified UTF-8" (JVMS 4.4.7): a character beyond U+FFFF as two surrogates of three bytes
// each, U+0000 as C0 80. Rules files and every reader of a report want UTF-8. What cannot be said in it (a lone
// surrogate, a broken byte) becomes U+FFFD. Thread-safety: pure functions. Errors: none.
//
// Example:
//   FromModifiedUtf8("\xed\xa0\xbd\xed\xb8\x80")  → "\xf0\x9f\x98\x80", U+1F600
#ifndef CADASTRE_SYMBOLIZER_UTF8_H_
#define CADASTRE_SYMBOLIZER_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cadastre {

// Bytes of the well-formed sequence at `at` (no overlong form, no surrogate, at most U+10FFFF); 0 = there is none.
size_t Utf8Length(std::string_view text, size_t at);

// `code` is at most U+10FFFF.
void AppendUtf8(uint32_t code, std::string* out);

// Each byte that belongs to no well-formed sequence becomes U+FFFD.
std::string ValidUtf8(std::string_view text);

std::string FromModifiedUtf8(std::string_view text);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_UTF8_H_
