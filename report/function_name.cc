#include "report/function_name.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace cadastre {

absl::string_view FileName(absl::string_view path) {
  size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

std::string JavaPackage(absl::string_view function, int limit) {
  std::vector<absl::string_view> parts = absl::StrSplit(function, '.');
  std::string package;
  int taken = 0;
  for (size_t i = 0; i + 2 < parts.size() && taken < limit; i++, taken++) {
    // A class begins with a capital; what follows it is a nested class or the method.
    if (parts[i].empty() || absl::ascii_isupper(parts[i][0])) break;
    absl::StrAppend(&package, package.empty() ? "" : ".", parts[i]);
  }
  return package;
}

std::string JavaClassPrefix(absl::string_view function) {
  size_t end = function.find_first_of(".$", 1);
  return std::string(function.substr(0, end == absl::string_view::npos ? end : end + 1));
}

std::string QualifiedName(absl::string_view function) {
  size_t begin = 0, end = function.size();
  int depth = 0;
  for (size_t i = 0; i < function.size(); i++) {
    char c = function[i];
    if (absl::StartsWith(function.substr(i), "(anonymous namespace)")) {
      i += sizeof("(anonymous namespace)") - 2;
      continue;
    }
    bool operator_name = absl::EndsWith(function.substr(0, i), "operator") ||
                         absl::EndsWith(function.substr(0, i), "operator<") ||
                         absl::EndsWith(function.substr(0, i), "operator-");
    if (c == '<' && !operator_name) depth++;
    if (c == '>' && !operator_name) depth--;
    if (depth != 0) continue;
    if (c == ' ' && !operator_name) begin = i + 1;
    if (c == '(') {
      end = i;
      break;
    }
  }
  return begin < end ? std::string(function.substr(begin, end - begin)) : std::string(function);
}

std::string NamespacePrefix(absl::string_view function) {
  std::string name = QualifiedName(function);
  std::string prefix;
  size_t at = 0;
  for (int level = 0; level < 2; level++) {
    size_t colon = name.find("::", at);
    if (colon == std::string::npos) break;
    absl::string_view part = absl::string_view(name).substr(at, colon - at);
    if (part.find('<') != absl::string_view::npos || part.empty()) break;
    absl::StrAppend(&prefix, part, "::");
    at = colon + 2;
  }
  return prefix;
}

std::string ShortFrame(const Frame& frame) {
  std::string name = frame.java ? frame.function : QualifiedName(frame.function);
  if (!frame.file.empty()) {
    absl::StrAppend(&name, " (", FileName(frame.file));
    if (frame.line > 0) absl::StrAppend(&name, ":", frame.line);
    return absl::StrCat(name, ")");
  }
  if (frame.java && frame.line > 0) absl::StrAppend(&name, ":", frame.line);
  // Without a symbol the name is "libfoo.so+0x1234" already.
  if (!frame.library.empty() && frame.resolved) absl::StrAppend(&name, " (", FileName(frame.library), ")");
  return name;
}

std::string PassedFrame(const Frame& frame) {
  if (!frame.java) return ShortFrame(frame);
  size_t method = frame.function.rfind('.');
  if (method == std::string::npos || method == 0) return frame.function;
  // npos + 1 is 0: a class without a package.
  return frame.function.substr(frame.function.rfind('.', method - 1) + 1);
}

}  // namespace cadastre
