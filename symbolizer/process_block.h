// The process region of a snapshot: a ProcessMemory as packed text (packed_text.h), so that `cadastre rss P@LABEL`
// works on any machine, and after the process is gone.
//
// The text: strings (varint count, each varint length and bytes), then varints in the order of ProcessMemory's fields.
// Addresses are differences from the one before, in pages where they are multiples of one; see process_block.cc.
// Errors: ParseProcessBlock refuses what does not fit; nothing of it is used then. Thread-safety: pure functions.
//
// Example:
//   std::string region = WriteProcessBlock(memory);
//   absl::StatusOr<ProcessMemory> again = ParseProcessBlock(region.data(), region.size());
#ifndef CADASTRE_SYMBOLIZER_PROCESS_BLOCK_H_
#define CADASTRE_SYMBOLIZER_PROCESS_BLOCK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "symbolizer/process_memory.h"

namespace cadastre {

inline constexpr char kProcessBlockMagic[8] = {'C', 'A', 'D', 'P', 'R', 'O', 'C', 'M'};
inline constexpr uint32_t kProcessBlockVersion = 1;
// A hundred thousand mappings take less than 10 MiB.
inline constexpr uint64_t kMaxProcessBytes = 64 << 20;

std::string WriteProcessBlock(const ProcessMemory& memory);

// `bytes` may be longer than the block (regions are padded to pages).
absl::StatusOr<ProcessMemory> ParseProcessBlock(const char* bytes, uint64_t size);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PROCESS_BLOCK_H_
