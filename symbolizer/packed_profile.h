// A saved profile: a header, the first strings and, compressed, everything else. Written by `cadastre`, never by the
// target, whose live file stays as profile_format.h describes it.
//
// Bytes, little-endian:
//   0       format::Header, version kPackedVersion (versions 3 and 4 know zstd alone, and in 3 sites have other
//   columns). Its regions and file_bytes
//           are those of the profile before: what a reader gets is that file again, without what nobody reads (free
//           slots, hashes of sites).
//   4096    the strings region as it is, up to Header::packed_offset: exe, host and options, for who looks at the
//           header alone (the target's `keep=`). Left out where they would take more than kMostRawStringBytes.
//   then    blocks, each a PackedBlock and its `stored_bytes`; the last one is of kind kPackedEnd.
// A block stands on its own: what is damaged or cut costs the records in it and no others. The text of a block, before
// its codec (packed_codec.h), is one of:
//   kPackedPlain    the bytes of the region from `first` (a byte) on
//   kPackedRecords  records from index `first` on, field by field (record_columns.h)
//   kPackedStacks   words of the frames region from `first` on, stack by stack (stack_columns.h)
//
//   ┌────────┬─────────────┬───────┬───────┬───────┬─────┬───────┬─────┐
//   │ Header │ strings ... │ live  │ live  │ sites │ ... │ names │ end │
//   └────────┴─────────────┴───────┴───────┴───────┴─────┴───────┴─────┘
//
// Blocks of one region ascend and do not overlap, so a file cannot ask for more memory than its regions have, and these
// have no more than kMaxUnpackedBytes: what `memory=` allows, and room for names. Nor can a small file ask for much: a
// block has at least LeastStoredBytes, filled up with bytes that say nothing where its records are all alike.
#ifndef CADASTRE_SYMBOLIZER_PACKED_PROFILE_H_
#define CADASTRE_SYMBOLIZER_PACKED_PROFILE_H_

#include <cstdint>

#include "interposer/profile_format.h"

namespace cadastre {

inline constexpr uint32_t kPackedBlockMagic = 0x4b4c4243;  // "CBLK"
// Of a region, in one block. A new block makes records tell anew what the one before has told; and stacks all words of
// theirs, which are fewer than 8 bytes a word.
inline constexpr uint64_t kPackedPlainBytes = 256 << 10, kPackedRecordBytes = 1 << 20, kPackedStackBytes = 4 << 20;
inline constexpr uint64_t kMaxPackedBlockBytes = 4 << 20;
// A word of a stack takes at most 16 bytes in columns, which is twice what it was; records at most 2.1 times.
inline constexpr uint64_t kMaxPackedTextBytes = 3 * kMaxPackedBlockBytes;
// Few profiles have more text than this. What follows is packed quickly: nobody shall wait for long.
inline constexpr uint64_t kPatientTextBytes = 4 << 20;
inline constexpr uint64_t kMostUnfolded = 1024;  // bytes of a region for each stored one
inline constexpr uint64_t kMaxUnpackedBytes = (1ull << 38) + (1ull << 32);
inline constexpr uint64_t kMostRawStringBytes = 64 << 10;

enum PackedEncoding : uint8_t { kPackedEnd = 0, kPackedPlain = 1, kPackedRecords = 2, kPackedStacks = 3 };

struct PackedBlock {
  uint32_t magic;
  uint32_t header_check;  // CRC-32 (zlib) of the fields behind it: its length can be trusted after damage before it
  uint32_t stored_check;  // CRC-32 of the stored bytes
  uint16_t region;        // format::RegionKind
  uint8_t encoding;       // PackedEncoding
  uint8_t codec;          // PackedCodec of its text; 0 before version 5
  uint32_t stored_bytes;
  uint32_t text_bytes;  // before compression
  uint64_t first;       // of the units below, that the block speaks of; of the end: blocks before it
  uint64_t count;       // bytes, records or words: no other is named in the block
};
static_assert(sizeof(PackedBlock) == 40);

uint32_t PackedHeaderCheck(const PackedBlock& block);
uint32_t PackedStoredCheck(const PackedBlock& block, const char* stored);
// Bytes of the unit in which it counts: a byte, a record or a word; 0 for what no block can be.
uint64_t PackedUnitOf(const PackedBlock& block);
// What a block that says so much must have stored at least.
uint64_t LeastStoredBytes(const PackedBlock& block);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PACKED_PROFILE_H_
