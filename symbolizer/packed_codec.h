// How the text of a packed profile's block becomes its stored bytes, and back (packed_profile.h).
//
//   kCodecZstd   frames of zstd (RFC 8878), each column with frequencies of its own; quick, for whatever is large or
//                copied from a process that goes on meanwhile
//   kCodecLzma   raw LZMA2 (https://www.7-zip.org/sdk.html, as liblzma has it) with kLzma... below; an eighth to a
//   sixth
//                smaller than zstd's level 15, and up to five times as long
// Behind what a codec has written there may be bytes that say nothing, which PadTo puts there.
// Errors: Compress yields a Status; Uncompress is false for what is no such text of that length. Thread-safety: a
// compressor is for one thread; the rest are pure functions.
//
// Example:
//   BlockCompressor compressor;
//   std::string stored, again(columns.text.size(), '\0');
//   if (compressor.Compress(columns, Effort::kThorough, &stored).ok())
//     Uncompress(CodecOf(Effort::kThorough), stored.data(), stored.size(), &again);
#ifndef CADASTRE_SYMBOLIZER_PACKED_CODEC_H_
#define CADASTRE_SYMBOLIZER_PACKED_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "symbolizer/column_text.h"

struct ZSTD_CCtx_s;

namespace cadastre {

enum PackedCodec : uint8_t { kCodecZstd = 0, kCodecLzma = 1 };

enum class Effort { kQuick, kMiddling, kThorough };
PackedCodec CodecOf(Effort effort);

class BlockCompressor {
 public:
  BlockCompressor();
  ~BlockCompressor();
  BlockCompressor(const BlockCompressor&) = delete;
  BlockCompressor& operator=(const BlockCompressor&) = delete;

  absl::Status Compress(const ColumnText& columns, Effort effort, std::string* stored);

 private:
  absl::Status Zstd(const ColumnText& columns, int level, std::string* stored);
  ZSTD_CCtx_s* context_;
};

// Fills `text`, which has the size that it shall have.
bool Uncompress(uint8_t codec, const char* stored, size_t stored_bytes, std::string* text);

void PadTo(uint64_t bytes, PackedCodec codec, std::string* stored);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PACKED_CODEC_H_
