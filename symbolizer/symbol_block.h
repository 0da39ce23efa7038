// The symbols region of a profile: names that `cadastre symbolize` resolved, so that a machine without the binaries
// reports in full.
//
// Bytes, little-endian:
//   a packed text (packed_text.h), which holds
//     strings   as in packed_frames.h
//     frames    varint count, then for each raw frame: 8 bytes, and its frames as in packed_frames.h
//     warnings  varint count, then string numbers: what the reader and the symbolizer had to say where the binaries
//     were
// Errors: ParseSymbolBlock refuses a block whose version, lengths or checksum do not fit; nothing of it is used then.
// Thread-safety: pure functions.
//
// Example:
//   SymbolBlock block;
//   block.frames.push_back({raw, symbolizer.Resolve(raw)});
//   std::string region = WriteSymbolBlock(block);
//   absl::StatusOr<SymbolBlock> again = ParseSymbolBlock(region.data(), region.size());
#ifndef CADASTRE_SYMBOLIZER_SYMBOL_BLOCK_H_
#define CADASTRE_SYMBOLIZER_SYMBOL_BLOCK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "symbolizer/profile.h"

namespace cadastre {

inline constexpr char kSymbolBlockMagic[8] = {'C', 'A', 'D', 'S', 'Y', 'M', 'B', 'L'};
inline constexpr uint32_t kSymbolBlockVersion = 1;

struct SymbolBlock {
  std::vector<std::pair<uint64_t, std::vector<Frame>>> frames;
  std::vector<std::string> warnings;
};

std::string WriteSymbolBlock(const SymbolBlock& block);

// `bytes` may be longer than the block (regions are padded to pages).
absl::StatusOr<SymbolBlock> ParseSymbolBlock(const char* bytes, uint64_t size);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_SYMBOL_BLOCK_H_
