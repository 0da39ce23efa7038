// Rust's two manglings. v0 after RFC 2603 (https://rust-lang.github.io/rfcs/2603-rust-symbol-name-mangling-v0.html);
// the text is what rustc-demangle prints in its short form (without crate hashes), generic arguments kept.
#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <string>
#include <vector>

#include "symbolizer/demangle.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

constexpr int kMaxDepth = 200;              // back references can nest without end
constexpr size_t kMaxNameBytes = 16 << 10;  // and a short symbol can unfold to gigabytes

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

// Bootstring of RFC 3492 with '_' for the delimiter, as RFC 2603 uses it.
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
      if (IsLower(c))
        digit = c - 'a';
      else if (IsDigit(c))
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
    if (n > 0x10ffff || (n >= 0xd800 && n < 0xe000) || codes.size() > kMaxNameBytes) return false;
    codes.insert(codes.begin() + static_cast<ptrdiff_t>(i), static_cast<uint32_t>(n));
    i++;
  }
  for (uint32_t code : codes) AppendUtf8(code, out);
  return true;
}

const char* BasicType(char tag) {
  switch (tag) {
    case 'a':
      return "i8";
    case 'b':
      return "bool";
    case 'c':
      return "char";
    case 'd':
      return "f64";
    case 'e':
      return "str";
    case 'f':
      return "f32";
    case 'h':
      return "u8";
    case 'i':
      return "isize";
    case 'j':
      return "usize";
    case 'l':
      return "i32";
    case 'm':
      return "u32";
    case 'n':
      return "i128";
    case 'o':
      return "u128";
    case 's':
      return "i16";
    case 't':
      return "u16";
    case 'u':
      return "()";
    case 'v':
      return "...";
    case 'x':
      return "i64";
    case 'y':
      return "u64";
    case 'z':
      return "!";
    case 'p':
      return "_";
    default:
      return nullptr;
  }
}

// Recursive descent over the grammar of RFC 2603. Every method prints what it reads; after an error ok_ is false and
// nothing more is read.
class V0Demangler {
 public:
  explicit V0Demangler(std::string_view text) : text_(text) {}

  bool Run(std::string* out) {
    if (IsDigit(Peek())) return false;  // an encoding version that is not ours
    Path(true);
    if (!ok_) return false;
    if (at_ < text_.size() && IsUpper(Peek())) {  // the instantiating crate, not shown
      quiet_++;
      Path(false);
      quiet_--;
    }
    if (!ok_ || at_ != text_.size()) return false;
    *out = std::move(out_);
    return true;
  }

 private:
  struct Identifier {
    std::string_view text;
    bool punycode = false;
    uint64_t disambiguator = 0;
  };

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char Next() {
    if (at_ < text_.size()) return text_[at_++];
    ok_ = false;
    return '\0';
  }
  bool Eat(char c) {
    if (Peek() != c || at_ >= text_.size()) return false;
    at_++;
    return true;
  }
  void Fail() { ok_ = false; }
  void Print(std::string_view text) {
    if (quiet_ > 0 || !ok_) return;
    if (out_.size() + text.size() > kMaxNameBytes) return Fail();
    out_.append(text);
  }

  uint64_t Base62() {
    if (Eat('_')) return 0;
    uint64_t value = 0;
    while (ok_ && !Eat('_')) {
      char c = Next();
      uint64_t digit;
      if (IsDigit(c))
        digit = c - '0';
      else if (IsLower(c))
        digit = 10 + (c - 'a');
      else if (IsUpper(c))
        digit = 36 + (c - 'A');
      else
        return Fail(), 0;
      if (__builtin_mul_overflow(value, 62, &value) || __builtin_add_overflow(value, digit, &value)) return Fail(), 0;
    }
    if (value == UINT64_MAX) return Fail(), 0;
    return value + 1;
  }
  uint64_t OptionalBase62(char tag) {
    if (!Eat(tag)) return 0;
    uint64_t value = Base62();
    return value == UINT64_MAX ? 0 : value + 1;
  }

  Identifier UndisambiguatedIdentifier() {
    Identifier identifier;
    identifier.punycode = Eat('u');
    if (!IsDigit(Peek())) return Fail(), identifier;
    uint64_t length = 0;
    if (!Eat('0')) {
      while (IsDigit(Peek()) && length < kMaxNameBytes) length = length * 10 + (Next() - '0');
    }
    Eat('_');
    if (length > text_.size() - at_) return Fail(), identifier;
    identifier.text = text_.substr(at_, length);
    at_ += length;
    return identifier;
  }
  Identifier ReadIdentifier() {
    uint64_t disambiguator = OptionalBase62('s');
    Identifier identifier = UndisambiguatedIdentifier();
    identifier.disambiguator = disambiguator;
    return identifier;
  }
  void PrintIdentifier(const Identifier& identifier) {
    if (!identifier.punycode) return Print(identifier.text);
    std::string decoded;
    if (DecodePunycode(identifier.text, &decoded)) return Print(decoded);
    Print("punycode{");
    Print(identifier.text);
    Print("}");
  }

  // Calls `read` at the place that a back reference names, which must lie before it.
  template <typename Read>
  void BackReference(size_t tag_at, Read read) {
    uint64_t target = Base62();
    if (!ok_ || target >= tag_at) return Fail();
    if (quiet_ > 0) return;  // it was read there; nothing is printed
    size_t resume = at_;
    at_ = target;
    read();
    at_ = resume;
  }

  void Path(bool value_position);
  void ImplPath() {
    OptionalBase62('s');
    quiet_++;
    Path(false);
    quiet_--;
  }
  void GenericArgument() {
    if (Eat('L')) {
      Lifetime(Base62());
    } else if (Eat('K')) {
      Const();
    } else {
      Type();
    }
  }
  void Lifetime(uint64_t index) {
    if (index == 0) return Print("'_");
    if (index > bound_lifetimes_) return Fail();
    uint64_t depth = bound_lifetimes_ - index;
    Print("'");
    if (depth < 26) {
      char letter = static_cast<char>('a' + depth);
      Print(std::string_view(&letter, 1));
    } else {
      Print("_" + std::to_string(depth));
    }
  }
  uint64_t Binder() {
    uint64_t count = OptionalBase62('G');
    if (count > 1000) return Fail(), 0;
    if (count > 0) {
      Print("for<");
      for (uint64_t i = 0; i < count; i++) {
        if (i > 0) Print(", ");
        bound_lifetimes_++;
        Lifetime(1);
      }
      Print("> ");
    }
    return count;
  }
  void Type();
  void FunctionType();
  void DynTrait();
  bool PathWithOpenGenerics();
  void Const();
  void ConstInteger(char type);
  void ConstString();

  std::string_view text_;
  size_t at_ = 0;
  std::string out_;
  bool ok_ = true;
  int quiet_ = 0;
  int depth_ = 0;
  uint64_t bound_lifetimes_ = 0;
};

void V0Demangler::Path(bool value_position) {
  if (++depth_ > kMaxDepth) Fail();
  if (!ok_) return;
  size_t tag_at = at_;
  switch (Next()) {
    case 'C':
      PrintIdentifier(ReadIdentifier());
      break;
    case 'N': {
      char space = Next();
      if (!IsLower(space) && !IsUpper(space)) return Fail();
      Path(value_position);
      Identifier identifier = ReadIdentifier();
      if (IsUpper(space)) {  // a special namespace: {closure#0}
        Print("::{");
        if (space == 'C')
          Print("closure");
        else if (space == 'S')
          Print("shim");
        else
          Print(std::string_view(&space, 1));
        if (!identifier.text.empty()) {
          Print(":");
          PrintIdentifier(identifier);
        }
        Print("#" + std::to_string(identifier.disambiguator) + "}");
      } else if (!identifier.text.empty()) {
        Print("::");
        PrintIdentifier(identifier);
      }
      break;
    }
    case 'M':
      ImplPath();
      Print("<");
      Type();
      Print(">");
      break;
    case 'X':
      ImplPath();
      [[fallthrough]];
    case 'Y':
      Print("<");
      Type();
      Print(" as ");
      Path(false);
      Print(">");
      break;
    case 'I': {
      Path(value_position);
      if (value_position) Print("::");
      Print("<");
      for (bool first = true; ok_ && !Eat('E'); first = false) {
        if (!first) Print(", ");
        GenericArgument();
      }
      Print(">");
      break;
    }
    case 'B':
      BackReference(tag_at, [&] { Path(value_position); });
      break;
    default:
      Fail();
  }
  depth_--;
}

void V0Demangler::Type() {
  if (++depth_ > kMaxDepth) Fail();
  if (!ok_) return;
  size_t tag_at = at_;
  char tag = Next();
  if (const char* basic = BasicType(tag)) {
    Print(basic);
    depth_--;
    return;
  }
  switch (tag) {
    case 'R':
    case 'Q':
      Print("&");
      if (Eat('L')) {
        uint64_t lifetime = Base62();
        if (lifetime != 0) {
          Lifetime(lifetime);
          Print(" ");
        }
      }
      if (tag == 'Q') Print("mut ");
      Type();
      break;
    case 'P':
      Print("*const ");
      Type();
      break;
    case 'O':
      Print("*mut ");
      Type();
      break;
    case 'A':
    case 'S':
      Print("[");
      Type();
      if (tag == 'A') {
        Print("; ");
        Const();
      }
      Print("]");
      break;
    case 'T': {
      Print("(");
      int count = 0;
      for (; ok_ && !Eat('E'); count++) {
        if (count > 0) Print(", ");
        Type();
      }
      Print(count == 1 ? ",)" : ")");
      break;
    }
    case 'F':
      FunctionType();
      break;
    case 'D':
      DynTrait();
      break;
    case 'B':
      BackReference(tag_at, [&] { Type(); });
      break;
    default:
      at_ = tag_at;
      Path(false);
  }
  depth_--;
}

void V0Demangler::FunctionType() {
  uint64_t bound = Binder();
  if (Eat('U')) Print("unsafe ");
  if (Eat('K')) {
    Print("extern \"");
    if (Eat('C')) {
      Print("C");
    } else {
      std::string abi(UndisambiguatedIdentifier().text);
      std::replace(abi.begin(), abi.end(), '_', '-');
      Print(abi);
    }
    Print("\" ");
  }
  Print("fn(");
  for (bool first = true; ok_ && !Eat('E'); first = false) {
    if (!first) Print(", ");
    Type();
  }
  Print(")");
  if (!Eat('u')) {
    Print(" -> ");
    Type();
  }
  bound_lifetimes_ -= bound;
}

void V0Demangler::DynTrait() {
  Print("dyn ");
  uint64_t bound = Binder();
  for (bool first = true; ok_ && !Eat('E'); first = false) {
    if (!first) Print(" + ");
    bool open = PathWithOpenGenerics();
    while (ok_ && Eat('p')) {  // Iterator<Item = u8>
      Print(open ? ", " : "<");
      open = true;
      PrintIdentifier(UndisambiguatedIdentifier());
      Print(" = ");
      Type();
    }
    if (open) Print(">");
  }
  bound_lifetimes_ -= bound;
  if (!Eat('L')) return Fail();
  uint64_t lifetime = Base62();
  if (lifetime != 0) {
    Print(" + ");
    Lifetime(lifetime);
  }
}

bool V0Demangler::PathWithOpenGenerics() {
  if (++depth_ > kMaxDepth) Fail();
  if (!ok_) return false;
  size_t tag_at = at_;
  bool open = false;
  if (Eat('B')) {
    BackReference(tag_at, [&] { open = PathWithOpenGenerics(); });
  } else if (Eat('I')) {
    Path(false);
    Print("<");
    for (bool first = true; ok_ && !Eat('E'); first = false) {
      if (!first) Print(", ");
      GenericArgument();
    }
    open = true;
  } else {
    Path(false);
  }
  depth_--;
  return open;
}

void V0Demangler::Const() {
  if (++depth_ > kMaxDepth) Fail();
  if (!ok_) return;
  size_t tag_at = at_;
  char tag = Next();
  switch (tag) {
    case 'p':
      Print("_");
      break;
    case 'B':
      BackReference(tag_at, [&] { Const(); });
      break;
    case 'e':
      Print("*");
      ConstString();
      break;
    case 'R':
    case 'Q':
      if (tag == 'R' && Eat('e')) {
        ConstString();
        break;
      }
      Print(tag == 'R' ? "&" : "&mut ");
      Const();
      break;
    case 'A':
    case 'T': {
      Print(tag == 'A' ? "[" : "(");
      int count = 0;
      for (; ok_ && !Eat('E'); count++) {
        if (count > 0) Print(", ");
        Const();
      }
      Print(tag == 'A' ? "]" : count == 1 ? ",)" : ")");
      break;
    }
    case 'V':
      Path(true);
      switch (Next()) {
        case 'U':
          break;
        case 'T':
          Print("(");
          for (bool first = true; ok_ && !Eat('E'); first = false) {
            if (!first) Print(", ");
            Const();
          }
          Print(")");
          break;
        case 'S':
          Print(" { ");
          for (bool first = true; ok_ && !Eat('E'); first = false) {
            if (!first) Print(", ");
            PrintIdentifier(ReadIdentifier());
            Print(": ");
            Const();
          }
          Print(" }");
          break;
        default:
          Fail();
      }
      break;
    default:
      ConstInteger(tag);
  }
  depth_--;
}

void V0Demangler::ConstInteger(char type) {
  if (std::string_view("abchijlmnostxy").find(type) == std::string_view::npos) return Fail();
  bool negative = Eat('n');
  size_t begin = at_;
  while (IsDigit(Peek()) || (Peek() >= 'a' && Peek() <= 'f')) at_++;
  std::string_view hex = text_.substr(begin, at_ - begin);
  if (!Eat('_') || hex.empty()) return Fail();
  while (hex.size() > 1 && hex[0] == '0') hex.remove_prefix(1);
  if (hex.size() > 16) {  // 128 bits stay as they are written
    Print(negative ? "-0x" : "0x");
    return Print(hex);
  }
  uint64_t value = 0;
  for (char c : hex) value = value * 16 + (IsDigit(c) ? c - '0' : 10 + (c - 'a'));
  if (type == 'b') return value <= 1 ? Print(value == 1 ? "true" : "false") : Fail();
  if (type == 'c') {
    std::string character = "'";
    if (value > 0x10ffff) return Fail();
    AppendUtf8(static_cast<uint32_t>(value), &character);
    return Print(character + "'");
  }
  Print((negative ? "-" : "") + std::to_string(value));
}

void V0Demangler::ConstString() {
  std::string bytes;
  while (ok_ && !Eat('_')) {
    int value = 0;
    for (int i = 0; i < 2; i++) {
      char c = Next();
      if (!IsDigit(c) && !(c >= 'a' && c <= 'f')) return Fail();
      value = value * 16 + (IsDigit(c) ? c - '0' : 10 + (c - 'a'));
    }
    bytes += static_cast<char>(value);
  }
  Print("\"" + bytes + "\"");
}

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
        if (!IsDigit(c) && !(c >= 'a' && c <= 'f')) return false;
        value = value * 16 + (IsDigit(c) ? c - '0' : 10 + (c - 'a'));
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
                     [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
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
    if (!IsDigit(symbol[at])) return false;
    while (at < symbol.size() && IsDigit(symbol[at]) && length < symbol.size())
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
