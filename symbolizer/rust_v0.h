// Rust's v0 mangling (RFC 2603, https://rust-lang.github.io/rfcs/2603-rust-symbol-name-mangling-v0.html) → the text
// that rustc-demangle prints in its short form: without crate hashes, generic arguments kept.
//
// Recursive descent over the grammar of the RFC. Every method prints what it reads; after an error ok_ is false and
// nothing more is read. Not for use by others than demangle_rust.cc. Thread-safety: one thread an object.
//
// Example: std::string name; if (V0Demangler("NvC7billing4post").Run(&name)) ...  // "billing::post"
#ifndef CADASTRE_SYMBOLIZER_RUST_V0_H_
#define CADASTRE_SYMBOLIZER_RUST_V0_H_

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "symbolizer/punycode.h"

namespace cadastre {

class V0Demangler {
 public:
  explicit V0Demangler(std::string_view text) : text_(text) {}

  bool Run(std::string* out) {
    if (absl::ascii_isdigit(Peek())) return false;  // an encoding version that is not ours
    Path(true);
    if (!ok_) return false;
    if (at_ < text_.size() && absl::ascii_isupper(Peek())) {  // the instantiating crate, not shown
      quiet_++;
      Path(false);
      quiet_--;
    }
    if (!ok_ || at_ != text_.size()) return false;
    *out = std::move(out_);
    return true;
  }

 private:
  static constexpr int kMaxDepth = 200;              // back references can nest without end
  static constexpr size_t kMaxNameBytes = 16 << 10;  // and a short symbol can unfold to gigabytes

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
      if (absl::ascii_isdigit(c))
        digit = c - '0';
      else if (absl::ascii_islower(c))
        digit = 10 + (c - 'a');
      else if (absl::ascii_isupper(c))
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
    if (!absl::ascii_isdigit(Peek())) return Fail(), identifier;
    uint64_t length = 0;
    if (!Eat('0')) {
      while (absl::ascii_isdigit(Peek()) && length < kMaxNameBytes) length = length * 10 + (Next() - '0');
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

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_RUST_V0_H_
