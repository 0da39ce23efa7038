#include "report/source_declarations.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace cadastre {
namespace {

constexpr std::string_view kTypeWords[] = {"class", "interface", "enum", "record", "object", "trait"};

bool IsWordChar(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

// Words and single marks, without comments, strings and preprocessor lines.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  // The next one; empty: the end.
  std::string_view Next() {
    while (at_ < text_.size() && SkipOne()) continue;
    if (at_ >= text_.size()) return "";
    size_t end = at_;
    while (end < text_.size() && IsWordChar(text_[end])) end++;
    if (end == at_) end++;
    const std::string_view token = text_.substr(at_, end - at_);
    at_ = end;
    line_begins_ = false;
    return token;
  }

 private:
  bool Starts(std::string_view with) const { return text_.substr(at_, with.size()) == with; }

  void SkipBehind(std::string_view end, size_t from) {
    const size_t found = text_.find(end, from);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }

  // One blank, comment, string or line of the preprocessor.
  bool SkipOne() {
    const char c = text_[at_];
    if (c == '\n') line_begins_ = true;
    if (absl::ascii_isspace(c) || c == '`') {
      at_++;
    } else if (Starts("//") || (c == '#' && line_begins_)) {
      SkipLine();
    } else if (Starts("/*")) {
      SkipBehind("*/", at_ + 2);
    } else if (Starts("\"\"\"")) {
      SkipBehind("\"\"\"", at_ + 3);
    } else if (c == '"') {
      SkipQuoted(c);
    } else if (c == '\'' && IsCharacter()) {
      SkipQuoted(c);
    } else {
      return false;
    }
    return true;
  }

  void SkipLine() {
    do {
      at_ = std::min(text_.find('\n', at_ + 1), text_.size());
    } while (at_ < text_.size() && text_[at_ - 1] == '\\');
  }

  // 'c', '\n'; but neither Scala's 'symbol nor C++'s 1'000.
  bool IsCharacter() const {
    if (text_.substr(at_ + 1, 1) == "\\") return true;
    return text_.substr(at_ + 2, 1) == "'";
  }

  void SkipQuoted(char quote) {
    for (at_++; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; at_++) {
      if (text_[at_] == '\\') at_++;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
  bool line_begins_ = true;
};

bool IsWord(std::string_view token) { return !token.empty() && IsWordChar(token[0]); }

SourceDeclarations OfJava(Tokens tokens) {
  SourceDeclarations found;
  int depth = 0;
  std::string_view before, token = tokens.Next();
  for (; !token.empty(); before = token, token = tokens.Next()) {
    if (token == "{" || token == "(") depth++;
    if ((token == "}" || token == ")") && depth > 0) depth--;
    if (depth > 0) continue;
    if (token == "package" && found.scope.empty()) {
      std::string scope;
      for (token = tokens.Next(); IsWord(token) || token == "."; token = tokens.Next()) {
        if (IsWord(token) && !scope.empty() && scope.back() != '.') break;  // the next declaration: no semicolon
        scope += token;
      }
      if (scope != "object") found.scope = scope;  // Scala's package object
      if (token.empty()) break;
    }
    if (token == "val" || token == "var") found.functions = true;
    if (token == "fun") {
      before = token;
      token = tokens.Next();
      if (token != "interface") found.functions = true;
    }
    const bool is_type = std::find(std::begin(kTypeWords), std::end(kTypeWords), token) != std::end(kTypeWords);
    if (!is_type || before == ".") continue;
    std::string_view name = tokens.Next();
    if (name == "class") name = tokens.Next();  // Kotlin's enum class
    if (IsWord(name)) found.types.emplace_back(name);
    token = name;
    if (token == "{" || token == "(") depth++;
  }
  return found;
}

SourceDeclarations OfNative(Tokens tokens) {
  SourceDeclarations found;
  std::string_view before;
  for (std::string_view token = tokens.Next(); !token.empty(); before = token, token = tokens.Next()) {
    if (token != "namespace" || before == "using") continue;
    std::string scope;
    int attribute = 0;
    for (token = tokens.Next(); IsWord(token) || token == ":" || token == "[" || token == "]"; token = tokens.Next()) {
      attribute += token == "[" ? 1 : token == "]" ? -1 : 0;
      if (attribute == 0 && token != "]" && token != "inline") scope += token;
    }
    if (token != "{" || scope.empty()) continue;  // an alias, or without a name
    found.scope = scope;
    break;
  }
  return found;
}

}  // namespace

SourceDeclarations DeclarationsOf(std::string_view text, bool java) {
  return java ? OfJava(Tokens(text)) : OfNative(Tokens(text));
}

}  // namespace cadastre
