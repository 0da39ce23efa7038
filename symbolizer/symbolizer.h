// Names frames: raw frame words of a profile become functions, files and lines.
//
// Each address is resolved once. A missing symbol is a counted loss and prints library+offset. A library on disk whose
// build id differs from the one recorded is not used (its names would be those of other code). With a cache the answers
// are the same, and sooner. Errors: none; a broken ELF file costs its own names and adds a warning, never the report.
// Thread-safety: not thread-safe; one per thread.
#ifndef CADASTRE_SYMBOLIZER_SYMBOLIZER_H_
#define CADASTRE_SYMBOLIZER_SYMBOLIZER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "symbolizer/profile.h"

namespace cadastre {

struct SymbolizerOptions {
  std::string root;          // put before every library path (a container's root); empty = none
  bool source_lines = true;  // read DWARF
  std::string cache;         // directory of names found earlier (symbol_cache.h); empty = none
};

// $CADASTRE_SYMBOL_CACHE, else $XDG_CACHE_HOME/cadastre, else ~/.cache/cadastre; empty where there is no home.
std::string DefaultSymbolCache();
// What a user writes for one: a directory, or "off", which is none.
std::string SymbolCacheNamed(const std::string& place);

class Symbolizer {
 public:
  Symbolizer(const Profile& profile, SymbolizerOptions options);
  ~Symbolizer();  // stores names

  // Innermost inlined function first; at least one Frame. The reference stays valid while the Symbolizer lives.
  const std::vector<Frame>& Resolve(uint64_t raw_frame);

  // Puts what was resolved so far into the cache, where the next one finds it.
  void StoreNames();

  uint64_t unresolved_frames() const;  // distinct raw frames without a symbol so far
  const std::vector<std::string>& warnings() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes OUT: PROFILE with every name resolved and stored, so that it can be reported where the binaries are not.
absl::Status WriteSymbolizedProfile(const std::string& profile_path, const std::string& out_path,
                                    const SymbolizerOptions& options);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_SYMBOLIZER_H_
