// A file of the symbol cache: what addresses of one library were found to be called (symbol_cache.h says where it
// lies).
//
// Bytes, little-endian: a packed text (packed_text.h: magic, version, checksum, zstd), which holds
//   strings     as in packed_frames.h
//   key         string numbers of the build id and of the sources: the files that the names were read from, and the
//               program that read them, as library_symbols.cc writes them down
//   soname      string number
//   names       varint count, then for each address, ascending: varint difference from the one before, and its frames
//               as in packed_frames.h, innermost first; none = nothing is known of this address
// Errors: ParseCachedNames refuses what does not fit; nothing of it is used then. Thread-safety: pure functions.
//
// Example:
//   std::string bytes = WriteCachedNames({.build_id = "9f3c", .sources = "...", .names = {{0x1234, frames}}});
//   absl::StatusOr<CachedNames> again = ParseCachedNames(bytes.data(), bytes.size());
#ifndef CADASTRE_SYMBOLIZER_CACHED_NAMES_H_
#define CADASTRE_SYMBOLIZER_CACHED_NAMES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "symbolizer/profile.h"

namespace cadastre {

inline constexpr char kCachedNamesMagic[8] = {'C', 'A', 'D', 'N', 'A', 'M', 'E', 'S'};
inline constexpr uint32_t kCachedNamesVersion = 1;
// Of one library. A small file cannot ask for more memory than these need.
inline constexpr uint64_t kMaxCachedNames = 1 << 20;

using NameOfAddress = std::pair<uint64_t, std::vector<Frame>>;

struct CachedNames {
  std::string build_id, sources;
  std::string soname;
  std::vector<NameOfAddress> names;  // by address, each once
};

std::string WriteCachedNames(const CachedNames& cached);
absl::StatusOr<CachedNames> ParseCachedNames(const char* bytes, uint64_t size);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_CACHED_NAMES_H_
