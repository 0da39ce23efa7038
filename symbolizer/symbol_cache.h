// Names on disk, so that the next report need not read symbol tables and DWARF again: one file for each build id and
// each set of files that its names were read from (cached_names.h has the format).
//
// A cache and nothing else: whatever is wrong with it (no home, no room, another user's directory, a damaged file, a
// newer format) the names are read from the libraries as without it, and nobody is told. Only the owner may have
// access: directory 0700, files 0600; what belongs to somebody else, may be written by others, or is a symbolic link is
// not used. Files appear whole by rename; of two commands that store at once the later wins, and what it did not know
// is looked up another time. A library without a build id has no file. Bounded: files that nobody has used for
// kMaxAgeDays go, then the longest unused ones until `max_bytes` are kept. Thread-safety: none; one object for each
// thread, any number of processes.
//
// Example:
//   SymbolCache cache(DefaultSymbolCache());
//   if (std::optional<CachedNames> known = cache.Load(build_id, sources)) ...
//   cache.Store({.build_id = build_id, .sources = sources, .names = found});
//   cache.Trim();
#ifndef CADASTRE_SYMBOLIZER_SYMBOL_CACHE_H_
#define CADASTRE_SYMBOLIZER_SYMBOL_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "symbolizer/cached_names.h"

namespace cadastre {

class SymbolCache {
 public:
  static constexpr uint64_t kMaxBytes = 256 << 20;  // some thousand libraries' names
  static constexpr int kMaxAgeDays = 30;

  // An empty directory turns it off. Nothing is made before the first Store.
  explicit SymbolCache(std::string directory, uint64_t max_bytes = kMaxBytes);
  ~SymbolCache();
  SymbolCache(const SymbolCache&) = delete;
  SymbolCache& operator=(const SymbolCache&) = delete;

  // `build_id` in hex.
  std::optional<CachedNames> Load(const std::string& build_id, const std::string& sources);
  // Adds to what is stored of this build id and these sources.
  void Store(CachedNames found);
  // Once after the last Store.
  void Trim();

 private:
  enum class Missing { kStayAway, kMake };
  bool OpenDirectory(Missing missing);
  void Write(const std::string& name, const std::string& bytes);

  std::string directory_;
  uint64_t max_bytes_;
  int descriptor_ = -1;  // of the directory, once it was found to be ours
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_SYMBOL_CACHE_H_
