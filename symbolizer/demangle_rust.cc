// Rust's two manglings: v0, and the legacy one in the clothes of a C++ name.
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "symbolizer/demangle.h"
#include "symbolizer/rust_v0.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

// "$LT$" and the like, ".." for "::", of one component of a legacy name.
bool AppendLegacyComponent(std::string_view component, std::string* out) {
  struct Escape {
    std::string_view code, text;
  };
  constexpr Escape kEscapes[] = {{"SP", "@"}, {"BP", "*"}, {"RF", "&"}, {"LT", "<"},
                                 {"GT", ">"}, {"LP", "("}, {"RP", ")"}, {"C", ","}};
  if (component.substr(0, 2) == "_$")
    component.remove_prefix(1);  // identifiers cannot begin with '$', so rustc puts '_' before
  for (size_t i = 0; i < component.size();) {
    if (component.substr(i, 2) == "..") {
      *out += "::";
      i += 2;
      continue;
    }
    if (component[i] != '$') {
      *out += component[i++];
      continue;
    }
    size_t end = component.find('$', i + 1);
    if (end == std::string_view::npos) return false;
    std::string_view code = component.substr(i + 1, end - i - 1);
    bool known = false;
    for (const Escape& escape : kEscapes) {
      if (code != escape.code) continue;
      out->append(escape.text);
      known = true;
    }
    if (!known) {
      if (code.size() < 2 || code.size() > 7 || code[0] != 'u') return false;
      uint32_t value = 0;
      for (char c : code.substr(1)) {
        if (!absl::ascii_isdigit(c) && !(c >= 'a' && c <= 'f')) return false;
        value = value * 16 + (absl::ascii_isdigit(c) ? c - '0' : 10 + (c - 'a'));
      }
      if (value > 0x10ffff) return false;
      AppendUtf8(value, out);
    }
    i = end + 1;
  }
  return true;
}

bool IsLegacyHash(std::string_view component) {
  return component.size() == 17 && component[0] == 'h' &&
         std::all_of(component.begin() + 1, component.end(),
                     [](char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool DemangleRustV0(std::string_view symbol, std::string* name) {
  if (symbol.substr(0, 2) != "_R") return false;
  symbol.remove_prefix(2);
  // What comes after '.' or '$' was added by a vendor: .llvm.123, .cold
  size_t suffix = symbol.find_first_of(".$@");
  return V0Demangler(symbol.substr(0, suffix)).Run(name);
}

bool DemangleRustLegacy(std::string_view symbol, std::string* name) {
  if (symbol.substr(0, 3) != "_ZN") return false;
  std::vector<std::string_view> components;
  size_t at = 3;
  while (at < symbol.size() && symbol[at] != 'E') {
    size_t length = 0;
    if (!absl::ascii_isdigit(symbol[at])) return false;
    while (at < symbol.size() && absl::ascii_isdigit(symbol[at]) && length < symbol.size())
      length = length * 10 + (symbol[at++] - '0');
    if (length == 0 || length > symbol.size() - at) return false;
    components.push_back(symbol.substr(at, length));
    at += length;
  }
  // C++ ends its names with parameters: nothing after the E, and the hash, make it Rust.
  if (at + 1 != symbol.size() || components.size() < 2 || !IsLegacyHash(components.back())) return false;
  components.pop_back();
  std::string text;
  for (std::string_view component : components) {
    if (!text.empty()) text += "::";
    if (!AppendLegacyComponent(component, &text)) return false;
  }
  *name = std::move(text);
  return true;
}

}  // namespace cadastre
