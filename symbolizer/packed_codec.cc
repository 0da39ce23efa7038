#include "symbolizer/packed_codec.h"

#include <lzma.h>
#include <zstd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cadastre {
namespace {

// zstd's levels. The middling one needs an eighth less than the quick one, and ten times as long: 60 ms for 150,000
// live samples and 14,000 sites.
constexpr int kMiddlingLevel = 15, kQuickLevel = 3;
constexpr size_t kFlushBytes = 16;  // that the end of a column may take in a zstd frame
constexpr uint32_t kLzmaPreset = 6;
constexpr size_t kLeastDictionary = 4096, kMostDictionary = 1 << 20;  // the encoder's memory is 11 times as large

// Columns of small numbers: one byte before tells as much as three, and no alignment means anything.
lzma_options_lzma LzmaOptions(size_t text_bytes) {
  lzma_options_lzma options;
  lzma_lzma_preset(&options, kLzmaPreset);
  options.dict_size = static_cast<uint32_t>(std::clamp(text_bytes, kLeastDictionary, kMostDictionary));
  options.lc = 1;
  options.lp = options.pb = 0;
  return options;
}

const uint8_t* Bytes(const char* from) { return reinterpret_cast<const uint8_t*>(from); }
uint8_t* Bytes(char* to) { return reinterpret_cast<uint8_t*>(to); }

absl::Status Lzma(const std::string& text, std::string* stored) {
  lzma_options_lzma options = LzmaOptions(text.size());
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  stored->resize(lzma_stream_buffer_bound(text.size()));
  size_t end = 0;
  const lzma_ret result = lzma_raw_buffer_encode(filters, nullptr, Bytes(text.data()), text.size(),
                                                 Bytes(stored->data()), &end, stored->size());
  if (result != LZMA_OK) return absl::InternalError(absl::StrCat("liblzma: error ", static_cast<int>(result)));
  stored->resize(end);
  return absl::OkStatus();
}

bool UncompressLzma(const char* stored, size_t stored_bytes, std::string* text) {
  lzma_options_lzma options = LzmaOptions(text->size());
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  size_t read = 0, written = 0;
  return lzma_raw_buffer_decode(filters, nullptr, Bytes(stored), &read, stored_bytes, Bytes(text->data()), &written,
                                text->size()) == LZMA_OK &&
         written == text->size();
}

bool UncompressZstd(const char* stored, size_t stored_bytes, std::string* text) {
  const size_t got = ZSTD_decompress(text->data(), text->size(), stored, stored_bytes);
  return !ZSTD_isError(got) && got == text->size();
}

}  // namespace

PackedCodec CodecOf(Effort effort) { return effort == Effort::kThorough ? kCodecLzma : kCodecZstd; }

BlockCompressor::BlockCompressor() : context_(ZSTD_createCCtx()) {
  // Blocks have a checksum of ours, and their sizes stand in front of them.
  ZSTD_CCtx_setParameter(context_, ZSTD_c_contentSizeFlag, 0);
}

BlockCompressor::~BlockCompressor() { ZSTD_freeCCtx(context_); }

absl::Status BlockCompressor::Compress(const ColumnText& columns, Effort effort, std::string* stored) {
  if (effort == Effort::kThorough) return Lzma(columns.text, stored);
  return Zstd(columns, effort == Effort::kMiddling ? kMiddlingLevel : kQuickLevel, stored);
}

absl::Status BlockCompressor::Zstd(const ColumnText& columns, int level, std::string* stored) {
  const std::string& text = columns.text;
  stored->resize(ZSTD_compressBound(text.size()) + kFlushBytes * columns.ends.size());
  ZSTD_outBuffer out{stored->data(), stored->size(), 0};
  ZSTD_CCtx_reset(context_, ZSTD_reset_session_only);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setPledgedSrcSize(context_, text.size());
  size_t at = 0;
  auto compress = [&](size_t end, ZSTD_EndDirective how) {
    ZSTD_inBuffer in{text.data() + at, end - at, 0};
    at = end;
    const size_t left = ZSTD_compressStream2(context_, &out, &in, how);
    if (left == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("zstd: ", ZSTD_isError(left) ? ZSTD_getErrorName(left) : "no room"));
  };
  absl::Status status;
  for (size_t end : columns.ends) status.Update(compress(end, ZSTD_e_flush));
  status.Update(compress(text.size(), ZSTD_e_end));
  stored->resize(out.pos);
  return status;
}

bool Uncompress(uint8_t codec, const char* stored, size_t stored_bytes, std::string* text) {
  switch (codec) {
    case kCodecZstd:
      return UncompressZstd(stored, stored_bytes, text);
    case kCodecLzma:
      return UncompressLzma(stored, stored_bytes, text);
    default:
      return false;
  }
}

void PadTo(uint64_t bytes, PackedCodec codec, std::string* stored) {
  if (stored->size() >= bytes) return;
  if (codec == kCodecZstd) {
    // With what zstd skips (RFC 8878, 3.1.2).
    constexpr uint32_t kSkippable = 0x184d2a50;
    const uint32_t header[] = {kSkippable, static_cast<uint32_t>(bytes - stored->size())};
    stored->append(reinterpret_cast<const char*>(header), sizeof(header));
    stored->append(header[1], '\0');
    return;
  }
  stored->resize(bytes);  // LZMA2 has a mark for its end
}

}  // namespace cadastre
