#include "report/jar_file.h"

#include <zip.h>

#include <memory>

#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

struct ZipCloser {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
using ZipArchive = std::unique_ptr<zip_t, ZipCloser>;

std::string ReadEntry(zip_t* zip, zip_uint64_t index, zip_uint64_t size) {
  std::string bytes(size, '\0');
  zip_file_t* file = zip_fopen_index(zip, index, 0);
  if (file == nullptr) return "";
  zip_int64_t got = zip_fread(file, bytes.data(), size);
  zip_fclose(file);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

absl::Status ForEachEntry(zip_t* zip, const VisitJarEntry& visit) {
  for (zip_int64_t i = 0, entries = zip_get_num_entries(zip, 0); i < entries; i++) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t status;
    if (zip_stat_index(zip, index, 0, &status) != 0) continue;
    JarEntry entry{status.name, status.size, [=] { return ReadEntry(zip, index, status.size); }};
    if (absl::Status visited = visit(entry); !visited.ok()) return visited;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachJarEntry(const std::string& path, const VisitJarEntry& visit) {
  int error = 0;
  ZipArchive zip(zip_open(path.c_str(), ZIP_RDONLY, &error));
  if (zip == nullptr) {
    zip_error_t reason;
    zip_error_init_with_code(&reason, error);
    std::string message = absl::StrCat(path, ": cannot read the jar: ", zip_error_strerror(&reason));
    zip_error_fini(&reason);
    return absl::InvalidArgumentError(message);
  }
  return ForEachEntry(zip.get(), visit);
}

absl::Status ForEachJarEntryIn(const std::string& bytes, const std::string& where, const VisitJarEntry& visit) {
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, nullptr);
  ZipArchive zip(source == nullptr ? nullptr : zip_open_from_source(source, ZIP_RDONLY, nullptr));
  if (zip == nullptr) {
    if (source != nullptr) zip_source_free(source);
    return absl::InvalidArgumentError(absl::StrCat(where, " is no jar that can be read"));
  }
  return ForEachEntry(zip.get(), visit);
}

}  // namespace cadastre
