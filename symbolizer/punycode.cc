#include "symbolizer/punycode.h"

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "symbolizer/utf8.h"

namespace cadastre {

constexpr size_t kMostCodes = 16 << 10;

// The names and numbers are those of RFC 3492, section 6.2.
bool DecodePunycode(std::string_view text, std::string* out) {
  size_t delimiter = text.rfind('_');
  std::string_view basic = delimiter == std::string_view::npos ? "" : text.substr(0, delimiter);
  std::string_view deltas = delimiter == std::string_view::npos ? text : text.substr(delimiter + 1);
  std::vector<uint32_t> codes(basic.begin(), basic.end());
  uint64_t n = 0x80, i = 0, bias = 72;
  bool first = true;
  for (size_t at = 0; at < deltas.size();) {
    uint64_t old_i = i, weight = 1;
    for (uint64_t k = 36;; k += 36) {
      if (at >= deltas.size()) return false;
      char c = deltas[at++];
      uint64_t digit;
      if (absl::ascii_islower(c))
        digit = c - 'a';
      else if (absl::ascii_isdigit(c))
        digit = 26 + (c - '0');
      else
        return false;
      i += digit * weight;
      uint64_t threshold = k <= bias ? 1 : std::min<uint64_t>(k - bias, 26);
      if (digit < threshold) break;
      weight *= 36 - threshold;
      if (weight > UINT32_MAX || i > UINT32_MAX) return false;
    }
    uint64_t count = codes.size() + 1;
    uint64_t delta = (i - old_i) / (first ? 700 : 2);
    first = false;
    delta += delta / count;
    uint64_t k = 0;
    for (; delta > 455; k += 36) delta /= 35;
    bias = k + 36 * delta / (delta + 38);
    n += i / count;
    i %= count;
    if (n > 0x10ffff || (n >= 0xd800 && n < 0xe000) || codes.size() > kMostCodes) return false;
    codes.insert(codes.begin() + static_cast<ptrdiff_t>(i), static_cast<uint32_t>(n));
    i++;
  }
  for (uint32_t code : codes) AppendUtf8(code, out);
  return true;
}

}  // namespace cadastre
