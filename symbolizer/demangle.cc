#include "symbolizer/demangle.h"

#include <cxxabi.h>
#include <stdlib.h>

#include <memory>
#include <vector>

namespace cadastre {
namespace {

constexpr size_t kMaxSymbolLength = 64 << 10;  // template monsters of 20 KiB exist; more is damage

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsIdentifier(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }
bool EndsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

// Length of "operator" and the symbol after it at text[at]; 0 if there is none. "operator new[]" and conversions are
// words: the symbol is empty there.
size_t OperatorLength(std::string_view text, size_t at) {
  constexpr std::string_view kOperator = "operator";
  if (text.substr(at, kOperator.size()) != kOperator) return 0;
  if (at > 0 && IsIdentifier(text[at - 1])) return 0;
  size_t after = at + kOperator.size();
  if (after < text.size() && IsIdentifier(text[after])) return 0;
  for (std::string_view symbol : {"<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "<", ">"}) {
    if (text.substr(after, symbol.size()) == symbol) return kOperator.size() + symbol.size();
  }
  return kOperator.size();
}

bool Opens(char c) { return c == '(' || c == '<' || c == '[' || c == '{'; }
char CloserOf(char c) { return c == '(' ? ')' : c == '<' ? '>' : c == '[' ? ']' : '}'; }

// One past the bracket that closes the one at text[at]; npos if none does. Knows operator names and that "->" closes
// nothing; an unclosed '<' inside ( or [ or { is a comparison and is given up when the outer bracket closes.
size_t SkipBrackets(std::string_view text, size_t at) {
  std::vector<char> closers;
  for (size_t i = at; i < text.size();) {
    if (size_t length = OperatorLength(text, i); length > 0) {
      i += length;
      continue;
    }
    char c = text[i];
    if (c == '-' && i + 1 < text.size() && text[i + 1] == '>') {
      i += 2;
      continue;
    }
    if (Opens(c)) {
      closers.push_back(CloserOf(c));
    } else if (c == ')' || c == ']' || c == '}' || c == '>') {
      if (c != '>') {
        while (!closers.empty() && closers.back() == '>') closers.pop_back();
      }
      if (!closers.empty() && closers.back() == c) closers.pop_back();
      if (closers.empty()) return i + 1;
    }
    i++;
  }
  return std::string_view::npos;
}

std::string_view WithoutThunkWords(std::string_view name) {
  for (std::string_view words : {"non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to ",
                                 "transaction clone for ", "non-transaction clone for "}) {
    if (StartsWith(name, words)) return name.substr(words.size());
  }
  return name;
}

// True for what may stand between a parameter list and "::" or the end: " const", " volatile", " &", " &&", "
// noexcept".
size_t SkipQualifiers(std::string_view text, size_t at) {
  for (bool again = true; again;) {
    again = false;
    for (std::string_view word : {" const", " volatile", " &&", " &", " noexcept", " restrict"}) {
      if (text.substr(at, word.size()) == word) {
        at += word.size();
        again = true;
      }
    }
  }
  return at;
}

}  // namespace

std::string_view WithoutSymbolSuffixes(std::string_view symbol) {
  // foo@GLIBC_2.17, foo@@GLIBC_2.2.5; a name may begin with '@' only in other people's languages.
  if (size_t at = symbol.find('@'); at != std::string_view::npos && at > 0) symbol = symbol.substr(0, at);
  // With a number after them, or bare.
  constexpr std::string_view kSuffixes[] = {".part",       ".cold",  ".constprop", ".isra",   ".llvm",    ".lto_priv",
                                            ".localalias", ".clone", ".warm",      ".__uniq", ".destroy", ".actor"};
  for (bool again = true; again;) {
    again = false;
    size_t end = symbol.size();
    while (end > 0 && IsDigit(symbol[end - 1])) end--;
    if (end > 0 && end < symbol.size() && symbol[end - 1] == '.')
      end--;
    else
      end = symbol.size();
    for (std::string_view suffix : kSuffixes) {
      std::string_view head = symbol.substr(0, end);
      if (!EndsWith(head, suffix) || head.size() == suffix.size()) continue;
      symbol = head.substr(0, head.size() - suffix.size());
      again = true;
      break;
    }
  }
  return symbol;
}

std::string QualifiedCppName(std::string_view demangled) {
  std::string_view text = WithoutThunkWords(demangled);
  std::string name;          // what is kept so far
  size_t name_begin = 0;     // in `name`: where the qualified name begins, after any return type
  bool in_operator = false;  // after "operator": blanks are part of the name
  for (size_t i = 0; i < text.size();) {
    if (size_t length = OperatorLength(text, i); length > 0) {
      name.append(text.substr(i, length));
      i += length;
      in_operator = true;
      continue;
    }
    char c = text[i];
    if (c == ' ' && !in_operator) {
      if (StartsWith(text.substr(i), " [clone") || StartsWith(text.substr(i), " requires ")) break;
      name += c;
      name_begin = name.size();
      i++;
      continue;
    }
    if (!Opens(c)) {
      name += c;
      i++;
      continue;
    }
    size_t end = SkipBrackets(text, i);
    if (end == std::string_view::npos) return std::string(demangled);  // not a name that we understand
    std::string_view group = text.substr(i, end - i);
    if (c != '(') {
      // "operator int<...>": template arguments end nothing.
      name.append(group);
      i = end;
      continue;
    }
    bool begins =
        name.size() == name_begin;  // nothing of the name yet: "(anonymous namespace)", "(*f(int))(char)", a decltype
    if (group == "(anonymous namespace)" || EndsWith(name, "decltype") || EndsWith(name, "decltype ")) {
      name.append(group);
      i = end;
      continue;
    }
    if (begins && group.size() > 2 &&
        (group[1] == '*' || group[1] == '&')) {  // a function that returns a function pointer
      std::string_view inner = group.substr(1, group.size() - 2);
      while (!inner.empty() && (inner[0] == '*' || inner[0] == '&' || inner[0] == ' ')) inner.remove_prefix(1);
      return QualifiedCppName(inner);
    }
    // A parameter list. Inside a name (a local class or lambda) it goes and the name goes on; else it is the end.
    size_t after = SkipQualifiers(text, end);
    if (text.substr(after, 2) == "::") {
      i = after;
      in_operator = false;
      continue;
    }
    break;
  }
  name.erase(0, name_begin);
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name.empty() ? std::string(demangled) : name;
}

std::string Demangle(std::string_view symbol) {
  if (symbol.size() > kMaxSymbolLength) return std::string(symbol);
  std::string name;
  if (StartsWith(symbol, "_R") && DemangleRustV0(symbol, &name)) return name;
  std::string_view bare = WithoutSymbolSuffixes(symbol);
  if (DemangleRustLegacy(bare, &name)) return name;
  if (!StartsWith(bare, "_Z")) return std::string(bare);
  std::string mangled(bare);
  int status = 0;
  std::unique_ptr<char, decltype(&free)> text(abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), free);
  if (status != 0 || text == nullptr) return mangled;
  return QualifiedCppName(text.get());
}

}  // namespace cadastre
