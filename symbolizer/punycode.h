// Punycode of RFC 3492 in the form of RFC 2603: digits are a-z and 0-9, and '_' is the delimiter.
//
// Errors: false for what is no such text, code points that Unicode does not have, and more than 16 Ki of them.
// Thread-safety: pure function.
//
// Example: std::string name; if (DecodePunycode("gdel_5qa", &name)) ...  // "gödel"
#ifndef CADASTRE_SYMBOLIZER_PUNYCODE_H_
#define CADASTRE_SYMBOLIZER_PUNYCODE_H_

#include <string>
#include <string_view>

namespace cadastre {

// Appends UTF-8.
bool DecodePunycode(std::string_view text, std::string* out);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PUNYCODE_H_
