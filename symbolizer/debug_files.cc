#include "symbolizer/debug_files.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

constexpr char kDebugRoot[] = "/usr/lib/debug";

bool CrcMatches(const std::string& path, uint32_t wanted) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return false;
  std::vector<unsigned char> chunk(256 << 10);
  uLong crc = crc32_z(0, nullptr, 0);
  ssize_t got;
  while ((got = read(descriptor, chunk.data(), chunk.size())) > 0) crc = crc32_z(crc, chunk.data(), got);
  close(descriptor);
  return got == 0 && crc == wanted;
}

std::string DirectoryOf(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

std::unique_ptr<ElfFile> FindDebugFileByBuildId(const std::string& root, const std::string& build_id) {
  if (build_id.size() < 6) return nullptr;
  std::string path =
      absl::StrCat(root, kDebugRoot, "/.build-id/", build_id.substr(0, 2), "/", build_id.substr(2), ".debug");
  std::unique_ptr<ElfFile> file = ElfFile::Open(path);
  return file != nullptr && file->build_id() == build_id ? std::move(file) : nullptr;
}

std::unique_ptr<ElfFile> FindDebugFile(const std::string& root, const std::string& path, const ElfFile& library) {
  std::string build_id = library.build_id();
  if (std::unique_ptr<ElfFile> file = FindDebugFileByBuildId(root, build_id)) return file;
  auto [name, crc] = library.DebugLink();
  if (name.empty()) return nullptr;
  std::string directory = DirectoryOf(path);
  for (const std::string& candidate :
       {absl::StrCat(root, directory, "/", name), absl::StrCat(root, directory, "/.debug/", name),
        absl::StrCat(root, kDebugRoot, directory, "/", name)}) {
    if (candidate == library.path() || !CrcMatches(candidate, crc)) continue;
    std::unique_ptr<ElfFile> file = ElfFile::Open(candidate);
    if (file == nullptr) continue;
    std::string own_id = file->build_id();
    if (own_id.empty() || build_id.empty() || own_id == build_id) return file;
  }
  return nullptr;
}

}  // namespace cadastre
