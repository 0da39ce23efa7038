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

std::string PlaceByBuildId(const std::string& root, const std::string& build_id) {
  if (build_id.size() < 6) return "";
  return absl::StrCat(root, kDebugRoot, "/.build-id/", build_id.substr(0, 2), "/", build_id.substr(2), ".debug");
}

std::vector<std::string> PlacesByLink(const std::string& root, const std::string& path, const ElfFile& library) {
  const std::string name = library.DebugLink().first;
  if (name.empty()) return {};
  const std::string directory = DirectoryOf(path);
  std::vector<std::string> places;
  for (const std::string& place :
       {absl::StrCat(root, directory, "/", name), absl::StrCat(root, directory, "/.debug/", name),
        absl::StrCat(root, kDebugRoot, directory, "/", name)}) {
    if (place != library.path()) places.push_back(place);
  }
  return places;
}

}  // namespace

std::unique_ptr<ElfFile> FindDebugFileByBuildId(const std::string& root, const std::string& build_id) {
  const std::string place = PlaceByBuildId(root, build_id);
  std::unique_ptr<ElfFile> file = place.empty() ? nullptr : ElfFile::Open(place);
  return file != nullptr && file->build_id() == build_id ? std::move(file) : nullptr;
}

std::unique_ptr<ElfFile> FindDebugFile(const std::string& root, const std::string& path, const ElfFile& library) {
  const std::string build_id = library.build_id();
  if (std::unique_ptr<ElfFile> file = FindDebugFileByBuildId(root, build_id)) return file;
  for (const std::string& place : PlacesByLink(root, path, library)) {
    std::unique_ptr<ElfFile> file = ElfFile::Open(place);
    if (file == nullptr) continue;
    const std::string own_id = file->build_id();
    const bool fits =
        own_id.empty() || build_id.empty() ? CrcMatches(place, library.DebugLink().second) : own_id == build_id;
    if (fits) return file;
  }
  return nullptr;
}

std::vector<std::string> DebugFilePlaces(const std::string& root, const std::string& path, const std::string& build_id,
                                         const ElfFile* library) {
  std::vector<std::string> places{PlaceByBuildId(root, build_id)};
  if (library != nullptr) {
    for (std::string& place : PlacesByLink(root, path, *library)) places.push_back(std::move(place));
  }
  return places;
}

}  // namespace cadastre
