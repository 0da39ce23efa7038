// Constants among a name's generic arguments.
#include "symbolizer/rust_v0.h"
#include "symbolizer/utf8.h"

namespace cadastre {

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
  while (absl::ascii_isdigit(Peek()) || (Peek() >= 'a' && Peek() <= 'f')) at_++;
  std::string_view hex = text_.substr(begin, at_ - begin);
  if (!Eat('_') || hex.empty()) return Fail();
  while (hex.size() > 1 && hex[0] == '0') hex.remove_prefix(1);
  if (hex.size() > 16) {  // 128 bits stay as they are written
    Print(negative ? "-0x" : "0x");
    return Print(hex);
  }
  uint64_t value = 0;
  for (char c : hex) value = value * 16 + (absl::ascii_isdigit(c) ? c - '0' : 10 + (c - 'a'));
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
      if (!absl::ascii_isdigit(c) && !(c >= 'a' && c <= 'f')) return Fail();
      value = value * 16 + (absl::ascii_isdigit(c) ? c - '0' : 10 + (c - 'a'));
    }
    bytes += static_cast<char>(value);
  }
  Print("\"" + bytes + "\"");
}

}  // namespace cadastre
