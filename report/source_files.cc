#include "report/source_files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/source_declarations.h"
#include "report/text_file.h"

namespace cadastre {
namespace {

constexpr std::string_view kJavaExtensions[] = {".java", ".kt", ".scala", ".groovy"};
constexpr std::string_view kNativeExtensions[] = {".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"};
constexpr size_t kMaxSourceBytes = 4 << 20;  // more is generated, and what it declares stands above

template <typename Extensions>
bool HasExtension(const Extensions& extensions, const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  return std::find(std::begin(extensions), std::end(extensions), extension) != std::end(extensions);
}

// As much of a file as lines can be had of.
std::string TextOf(const std::string& path) {
  std::string text;
  absl::StatusOr<TextFile> file = TextFile::Open(path);
  if (!file.ok()) return text;
  while (text.size() < kMaxSourceBytes && file->Next()) text.append(file->line()).push_back('\n');
  return text;
}

SourceFile ReadSource(const std::filesystem::path& path, const std::string& directory, bool java) {
  SourceFile source;
  source.path = path.lexically_relative(directory).generic_string();
  source.java = java;
  SourceDeclarations declared = DeclarationsOf(TextOf(path.string()), java);
  source.scope = std::move(declared.scope);
  if (!java) return source;
  const std::string stem = path.stem().string();
  source.types = std::move(declared.types);
  if (declared.functions && path.extension() == ".kt") source.types.push_back(absl::StrCat(stem, "Kt"));
  auto own = std::find(source.types.begin(), source.types.end(), stem);
  if (own != source.types.end()) std::rotate(source.types.begin(), own, own + 1);
  if (source.types.empty()) source.types.push_back(stem);
  return source;
}

}  // namespace

std::string SourceFile::Directory() const {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::vector<Frame> SourceFile::AsFrames() const {
  Frame frame;
  frame.file = path;
  frame.java = java;
  frame.resolved = java || !scope.empty();
  if (!java) {
    if (!scope.empty()) frame.function = absl::StrCat(scope, "::");
    return {frame};
  }
  std::vector<Frame> frames;
  for (const std::string& type : types) {
    frame.function = absl::StrCat(scope, scope.empty() ? "" : ".", type, ".");
    frames.push_back(frame);
  }
  return frames;
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
    files.push_back(ReadSource(path, directory, java));
  }
  // Directories come in no order of their own.
  std::sort(files.begin(), files.end(), [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  for (const SourceFile& file : files) take(file);
  return absl::OkStatus();
}

}  // namespace cadastre
