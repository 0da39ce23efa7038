#include "report/code_inventory.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/attribution.h"
#include "report/function_name.h"
#include "report/jar_file.h"
#include "report/source_files.h"
#include "symbolizer/library_functions.h"

namespace cadastre {
namespace {

constexpr int kMaxJarDepth = 3;                // an EAR holds WARs, which hold jars
constexpr uint64_t kMaxInnerJar = 1ull << 30;  // read into memory

bool IsLibrary(absl::string_view name) {
  absl::string_view file = FileName(name);
  size_t so = file.find(".so");
  return so != absl::string_view::npos && (so + 3 == file.size() || file[so + 3] == '.');
}

// "com/acme/Shop.class" below a root of packages → the member; nested classes, and what is no class, are none.
void TakeClassFile(absl::string_view name, const std::string& where, const TakeMember& take) {
  if (!absl::ConsumeSuffix(&name, ".class") || absl::StrContains(name, "$") || absl::EndsWith(name, "-info")) return;
  CodeMember member;
  member.frame.function = absl::StrCat(absl::StrReplaceAll(name, {{"/", "."}}), ".");
  member.frame.java = member.frame.resolved = true;
  member.prefix = PrefixForFrame(member.frame);
  member.what = "class";
  member.where = where;
  take(member);
}

void TakeLibrary(const std::string& path, const std::string& where, const TakeMember& take) {
  CodeMember member;
  member.frame.library = path;
  member.prefix = absl::StrCat("lib:", LibraryStem(path));
  member.what = "library";
  member.where = where;
  take(member);
}

absl::string_view WithoutClassRoot(absl::string_view name) {
  for (absl::string_view root : {"BOOT-INF/classes/", "WEB-INF/classes/"}) absl::ConsumePrefix(&name, root);
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "META-INF/versions/")) {
    size_t slash = rest.find('/');
    if (slash != absl::string_view::npos) return rest.substr(slash + 1);
  }
  return name;
}

VisitJarEntry TakeJar(const std::string& where, int depth, const TakeMember& take) {
  return [=](const JarEntry& entry) -> absl::Status {
    if (IsLibrary(entry.name)) {
      TakeLibrary(entry.name, where, take);
    } else if (absl::EndsWith(entry.name, ".jar") || absl::EndsWith(entry.name, ".war")) {
      if (depth == kMaxJarDepth || entry.size_bytes > kMaxInnerJar)
        return absl::InvalidArgumentError(absl::StrCat(where, ": ", entry.name, " lies too deep or is too large"));
      return ForEachJarEntryIn(entry.read(), absl::StrCat(where, ": ", entry.name),
                               TakeJar(absl::StrCat(where, "!", entry.name), depth + 1, take));
    } else {
      TakeClassFile(WithoutClassRoot(entry.name), where, take);
    }
    return absl::OkStatus();
  };
}

// The functions of a library that no rule for the whole would own; the library itself where it names none.
void TakeLibraryFile(const std::string& path, const TakeMember& take) {
  TakeLibrary(path, path, take);
  for (std::string& function : FunctionsOfLibrary(path)) {
    if (NamespacePrefix(function).empty()) continue;  // C: the library stands for it
    CodeMember member;
    member.frame.function = std::move(function);
    member.frame.library = path;
    member.frame.resolved = true;
    member.prefix = PrefixForFrame(member.frame);
    member.what = "function";
    member.where = path;
    take(member);
  }
}

// The part of a path that names packages.
std::string BelowClassRoot(const std::string& path) {
  absl::string_view rest = path;
  size_t root = path.rfind("classes/");
  if (root != std::string::npos && (root == 0 || path[root - 1] == '/')) {
    rest.remove_prefix(root + 8);
    for (absl::string_view language : {"java/", "kotlin/", "scala/", "groovy/"}) {
      absl::string_view inner = rest;
      if (absl::ConsumePrefix(&inner, language) &&
          (absl::ConsumePrefix(&inner, "main/") || absl::ConsumePrefix(&inner, "test/")))
        rest = inner;
    }
  }
  return std::string(rest);
}

}  // namespace

absl::Status ReadJar(const std::string& path, const TakeMember& take) {
  return ForEachJarEntry(path, TakeJar(path, 0, take));
}

absl::Status ReadBuildDirectory(const std::string& path, const TakeMember& take) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::recursive_directory_iterator entries(path, fs::directory_options::skip_permission_denied, error);
  if (error) return absl::NotFoundError(absl::StrCat(path, ": cannot read: ", error.message()));
  std::vector<std::string> files;
  for (; entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (error) return absl::InternalError(absl::StrCat(path, ": cannot read: ", error.message()));
    if (entries->is_regular_file(error)) files.push_back(entries->path().string());
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    if (absl::EndsWith(file, ".jar") || absl::EndsWith(file, ".war")) {
      if (absl::Status status = ReadJar(file, take); !status.ok()) return status;
    } else if (IsLibrary(file)) {
      TakeLibraryFile(file, take);
    } else {
      TakeClassFile(BelowClassRoot(fs::path(file).lexically_relative(path).generic_string()), path, take);
    }
  }
  return absl::OkStatus();
}

absl::Status ReadSourceDirectory(const std::string& path, const TakeMember& take) {
  return ForEachSource(path, [&](const SourceFile& file) {
    CodeMember member;
    member.frame = file.AsFrames().front();
    member.prefix = member.frame.resolved ? PrefixForFrame(member.frame) : absl::StrCat("src:", file.Directory());
    if (member.prefix == "src:") member.prefix += file.path;
    member.what = "source";
    member.where = absl::StrCat(path, "/", file.path);
    take(member);
  });
}

}  // namespace cadastre
