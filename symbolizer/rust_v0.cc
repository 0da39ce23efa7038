#include "symbolizer/rust_v0.h"

namespace cadastre {
namespace {

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

}  // namespace

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
      if (!absl::ascii_islower(space) && !absl::ascii_isupper(space)) return Fail();
      Path(value_position);
      Identifier identifier = ReadIdentifier();
      if (absl::ascii_isupper(space)) {  // a special namespace: {closure#0}
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

}  // namespace cadastre
