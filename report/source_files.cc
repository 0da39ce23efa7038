#include "report/source_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/text_file.h"

namespace cadastre {
namespace {

constexpr std::string_view kJavaExtensions[] = {".java", ".kt", ".scala", ".groovy"};
constexpr std::string_view kNativeExtensions[] = {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"};
constexpr size_t kMaxLines = 2000;  // declarations stand above the code

template <typename Extensions>
bool HasExtension(const Extensions& extensions, const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  return std::find(std::begin(extensions), std::end(extensions), extension) != std::end(extensions);
}

// "com.acme.billing" of "package com.acme.billing;", "acme::billing" of "namespace acme::billing {".
std::string Declared(absl::string_view line, absl::string_view word, absl::string_view separators) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, word) || line.empty() || !absl::ascii_isspace(line[0])) return "";
  line = absl::StripLeadingAsciiWhitespace(line);
  size_t end = 0;
  while (end < line.size() && (absl::ascii_isalnum(line[end]) || line[end] == '_' ||
                               separators.find(line[end]) != absl::string_view::npos)) {
    end++;
  }
  return std::string(line.substr(0, end));
}

std::string ScopeOf(const std::string& path, bool java) {
  absl::StatusOr<TextFile> file = TextFile::Open(path);
  if (!file.ok()) return "";
  while (file->Next() && file->line_number() <= kMaxLines) {
    absl::string_view line(file->line().data(), file->line().size());
    std::string scope = java ? Declared(line, "package", ".") : Declared(line, "namespace", ":");
    if (!scope.empty()) return scope;
  }
  return "";
}

}  // namespace

std::string SourceFile::Directory() const {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::string SourceFile::Stem() const {
  std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

Frame SourceFile::AsFrame() const {
  Frame frame;
  frame.file = path;
  frame.java = java;
  if (java) {
    frame.function = absl::StrCat(scope, scope.empty() ? "" : ".", Stem(), ".");
  } else if (!scope.empty()) {
    frame.function = absl::StrCat(scope, "::");
  }
  frame.resolved = !frame.function.empty();
  return frame;
}

absl::Status ForEachSource(const std::string& directory, const std::function<void(const SourceFile&)>& take) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::recursive_directory_iterator entries(directory, fs::directory_options::skip_permission_denied, error);
  if (error) return absl::NotFoundError(absl::StrCat(directory, ": cannot read: ", error.message()));
  std::vector<SourceFile> files;
  for (; entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (error) return absl::InternalError(absl::StrCat(directory, ": cannot read: ", error.message()));
    const fs::path& path = entries->path();
    if (absl::StartsWith(path.filename().string(), ".")) {
      if (entries->is_directory(error)) entries.disable_recursion_pending();
      continue;
    }
    const bool java = HasExtension(kJavaExtensions, path);
    if ((!java && !HasExtension(kNativeExtensions, path)) || !entries->is_regular_file(error)) continue;
    files.push_back({path.lexically_relative(directory).generic_string(), java, ScopeOf(path.string(), java)});
  }
  // Directories come in no order of their own.
  std::sort(files.begin(), files.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  for (const SourceFile& file : files) take(file);
  return absl::OkStatus();
}

}  // namespace cadastre
