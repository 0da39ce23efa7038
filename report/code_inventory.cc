#include "report/code_inventory.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/attribution.h"
#include "report/function_name.h"
#include "report/source_files.h"
#include "symbolizer/library_functions.h"

namespace cadastre {
namespace {

constexpr int kMaxJarDepth = 3;                    // an EAR holds WARs, which hold jars
constexpr zip_uint64_t kMaxInnerJar = 1ull << 30;  // read into memory

struct ZipCloser {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
using ZipArchive = std::unique_ptr<zip_t, ZipCloser>;

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

std::string ReadEntry(zip_t* zip, zip_uint64_t index, zip_uint64_t size) {
  std::string bytes(size, '\0');
  zip_file_t* file = zip_fopen_index(zip, index, 0);
  if (file == nullptr) return "";
  zip_int64_t got = zip_fread(file, bytes.data(), size);
  zip_fclose(file);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

absl::Status TakeJar(zip_t* zip, const std::string& where, int depth, const TakeMember& take) {
  for (zip_int64_t i = 0, entries = zip_get_num_entries(zip, 0); i < entries; i++) {
    zip_stat_t status;
    if (zip_stat_index(zip, static_cast<zip_uint64_t>(i), 0, &status) != 0) continue;
    std::string name = status.name;
    if (IsLibrary(name)) {
      TakeLibrary(name, where, take);
    } else if (absl::EndsWith(name, ".jar") || absl::EndsWith(name, ".war")) {
      if (depth == kMaxJarDepth || status.size > kMaxInnerJar)
        return absl::InvalidArgumentError(absl::StrCat(where, ": ", name, " lies too deep or is too large"));
      std::string bytes = ReadEntry(zip, static_cast<zip_uint64_t>(i), status.size);
      zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, nullptr);
      ZipArchive inner(source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, nullptr));
      if (inner == nullptr) {
        if (source != nullptr) zip_source_free(source);
        return absl::InvalidArgumentError(absl::StrCat(where, ": ", name, " is no jar that can be read"));
      }
      if (absl::Status inside = TakeJar(inner.get(), absl::StrCat(where, "!", name), depth + 1, take); !inside.ok())
        return inside;
    } else {
      TakeClassFile(WithoutClassRoot(name), where, take);
    }
  }
  return absl::OkStatus();
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
  int error = 0;
  ZipArchive zip(zip_open(path.c_str(), ZIP_RDONLY, &error));
  if (zip == nullptr) {
    zip_error_t reason;
    zip_error_init_with_code(&reason, error);
    std::string message = absl::StrCat(path, ": cannot read the jar: ", zip_error_strerror(&reason));
    zip_error_fini(&reason);
    return absl::InvalidArgumentError(message);
  }
  return TakeJar(zip.get(), path, 0, take);
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
    member.frame = file.AsFrame();
    member.prefix = member.frame.resolved ? PrefixForFrame(member.frame) : absl::StrCat("src:", file.Directory());
    if (member.prefix == "src:") member.prefix += file.path;
    member.what = "source";
    member.where = absl::StrCat(path, "/", file.path);
    take(member);
  });
}

}  // namespace cadastre
