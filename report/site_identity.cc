#include "report/site_identity.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

bool IsHex(char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); }
bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); }

// How a generated part of a name begins, what stands for it, and which characters it goes on with.
struct Generated {
  absl::string_view begin, instead;
  bool (*goes_on)(char);
};

// "0x", '/', '+', '.', '$' and digits behind "$$Lambda": "$$Lambda$14/0x0000000800c03000", "$$Lambda+0x00007f01".
bool IsLambdaTail(char c) { return IsHex(c) || c == 'x' || c == '/' || c == '+' || c == '$'; }
bool IsCglibTail(char c) { return IsWord(c) || c == '$' || c == '_'; }

constexpr Generated kGenerated[] = {
    {"$$Lambda", "$$Lambda", IsLambdaTail},
    {"LambdaForm$", "LambdaForm", [](char c) { return IsWord(c) || c == '$' || c == '/' || c == '+' || c == '_'; }},
    {"$$EnhancerBySpringCGLIB$$", "$$CGLIB", IsCglibTail},
    {"$$EnhancerByCGLIB$$", "$$CGLIB", IsCglibTail},
    {"$$FastClassBySpringCGLIB$$", "$$CGLIB", IsCglibTail},
    {"$$FastClassByCGLIB$$", "$$CGLIB", IsCglibTail},
    {"$$SpringCGLIB$$", "$$CGLIB", IsCglibTail},
    {"$ByteBuddy$", "$ByteBuddy", IsWord},
    {"$MockitoMock$", "$MockitoMock", IsWord},
    {"$HibernateProxy$", "$HibernateProxy", IsWord},
    {"$auxiliary$", "$auxiliary", IsWord},
    {"$Proxy", "$Proxy", IsDigit},
    {"jdk.proxy", "jdk.proxy", IsDigit},
    {"GeneratedMethodAccessor", "GeneratedMethodAccessor", IsDigit},
    {"GeneratedConstructorAccessor", "GeneratedConstructorAccessor", IsDigit},
    {"GeneratedSerializationConstructorAccessor", "GeneratedSerializationConstructorAccessor", IsDigit},
};

// "lambda$add$3", "$anonfun$add$3", "add$lambda$3", "{lambda(int)#3}", "$_3": the number counts the lambdas of a class
// or a function in the order of the source.
size_t CountedLambdaNumber(absl::string_view name, size_t at, size_t name_end) {
  const absl::string_view before = name.substr(0, at);
  if (name[at] == '$' && at + 1 < name_end && IsDigit(name[at + 1])) {
    size_t end = at + 1;
    while (end < name_end && IsDigit(name[end])) end++;
    const size_t method = before.rfind('.') + 1;
    const absl::string_view word = before.substr(method);
    const bool counted = absl::StartsWith(word, "lambda$") || absl::StrContains(word, "$anonfun$") ||
                         absl::EndsWith(word, "$lambda") || absl::EndsWith(word, "$anonfun");
    if (counted && (end == name_end || !IsWord(name[end]))) return end;
  }
  if (name[at] == '#' && absl::StrContains(before, "{lambda(")) {
    size_t end = at + 1;
    while (end < name_end && IsDigit(name[end])) end++;
    if (end > at + 1 && end < name_end && name[end] == '}') return end;
  }
  return at;
}

// "f.part.0", "f.constprop.1.isra.0", "f.cold", "f [clone .part.0]".
absl::string_view WithoutClones(absl::string_view name) {
  if (size_t clone = name.find(" [clone "); clone != absl::string_view::npos) name = name.substr(0, clone);
  for (absl::string_view suffix : {".part.", ".constprop.", ".isra.", ".cold", ".lto_priv.", ".llvm."}) {
    if (size_t at = name.find(suffix); at != absl::string_view::npos && at > 0) name = name.substr(0, at);
  }
  // Rust's hash: "acme::Index::add::h0123456789abcdef".
  if (name.size() > 19 && name.substr(name.size() - 19, 3) == "::h" &&
      std::all_of(name.end() - 16, name.end(), [](char c) { return IsHex(c); })) {
    name.remove_suffix(19);
  }
  return name;
}

// FNV-1a of 64 bits, piece by piece.
class StableHasher {
 public:
  void Add(absl::string_view text) {
    for (char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  std::string Text() const { return absl::StrCat(absl::Hex(hash_, absl::kZeroPad16)); }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// Of the names of a stack's frames. A function that calls itself counts once.
class StackHasher {
 public:
  // `name` must live until the next one.
  void Add(const std::string& name) {
    if (last_ != nullptr && name == *last_) return;
    hasher_.Add(name);
    hasher_.Add("\n");
    last_ = &name;
  }
  std::string Text() const { return hasher_.Text(); }

 private:
  StableHasher hasher_;
  const std::string* last_ = nullptr;
};

size_t ToOwner(size_t frames, int owner_frame) {
  return owner_frame >= 0 ? std::min(frames, static_cast<size_t>(owner_frame) + 1) : frames;
}

std::string FrameName(const Frame& frame) {
  if (frame.resolved || frame.java) return StableName(frame.function);
  // "libfoo.so.1.2+0x1234": the version goes, the offset is all there is. An address alone says nothing.
  const size_t plus = frame.function.rfind('+');
  if (frame.library.empty() || plus == std::string::npos) return "?";
  return absl::StrCat(LibraryStem(frame.library), frame.function.substr(plus));
}

}  // namespace

std::string StableName(absl::string_view function) {
  const absl::string_view name = WithoutClones(function);
  std::string stable;
  for (size_t at = 0; at < name.size();) {
    const Generated* found = nullptr;
    for (const Generated& generated : kGenerated) {
      // The first letter alone settles nearly all of it, a hundred times a name.
      if (name[at] == generated.begin[0] && absl::StartsWith(name.substr(at), generated.begin)) {
        found = &generated;
        break;
      }
    }
    if (found != nullptr) {
      absl::StrAppend(&stable, found->instead);
      at += found->begin.size();
      while (at < name.size() && found->goes_on(name[at])) at++;
      // An address behind a dot: "LambdaForm$MH.0x0000000800c03000.invoke", "$$Lambda.0x...".
      if (absl::StartsWith(name.substr(at), ".0x")) {
        at += 3;
        while (at < name.size() && IsHex(name[at])) at++;
      }
      continue;
    }
    if (name[at] == '$' || name[at] == '#') {
      const size_t end = CountedLambdaNumber(name, at, name.size());
      if (end > at) {
        absl::StrAppend(&stable, name.substr(at, 1), "*");
        at = end;
        continue;
      }
    }
    // A hidden class: "Shop/0x00007f0123456789.run", "Shop+0x...".
    if ((name[at] == '/' || name[at] == '+') && absl::StartsWith(name.substr(at + 1), "0x")) {
      at += 3;
      while (at < name.size() && IsHex(name[at])) at++;
      continue;
    }
    stable += name[at++];
  }
  return stable;
}

std::string StableHash(absl::string_view text) {
  StableHasher hasher;
  hasher.Add(text);
  return hasher.Text();
}

const std::string& SiteIdentities::NameOf(uint32_t number) {
  std::string& name = names_[number];
  if (name.empty()) name = FrameName(attribution_->FrameNumbered(number));
  return name;
}

std::string SiteIdentities::Of(uint32_t site, int owner_frame) {
  attribution_->FrameNumbersOf(site, &numbers_);
  numbers_.resize(ToOwner(numbers_.size(), owner_frame));
  const uint32_t most = numbers_.empty() ? 0 : *std::max_element(numbers_.begin(), numbers_.end());
  if (most >= names_.size()) names_.resize(most + 1);
  StackHasher hasher;
  for (uint32_t number : numbers_) hasher.Add(NameOf(number));
  return hasher.Text();
}

std::string SiteIdentity(const std::vector<const Frame*>& frames, int owner_frame) {
  std::vector<std::string> names;
  for (size_t i = 0; i < ToOwner(frames.size(), owner_frame); i++) names.push_back(FrameName(*frames[i]));
  StackHasher hasher;
  for (const std::string& name : names) hasher.Add(name);
  return hasher.Text();
}

}  // namespace cadastre
