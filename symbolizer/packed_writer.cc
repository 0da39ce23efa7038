#include "symbolizer/packed_writer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/record_columns.h"

namespace cadastre {
namespace {

constexpr int kLevel = 3;  // beyond it the time doubles for a few per cent
constexpr uint64_t kStackWords = kPackedUnitBytes / 8;
constexpr uint32_t kMaxStackWords = 4096;  // of one stack; the reader takes no longer one

// Where the string ends, in bytes from the region's start; UINT64_MAX if it is none.
uint64_t EndOfString(uint32_t unit, const char* strings, uint64_t bytes) {
  if (unit == 0) return 0;
  const uint64_t at = unit * 8ull;
  format::StringHeader string;
  if (at > bytes || bytes - at < sizeof(string)) return UINT64_MAX;
  memcpy(&string, strings + at, sizeof(string));
  if (string.length > bytes - at - sizeof(string)) return UINT64_MAX;
  return at + sizeof(string) + string.length;
}

}  // namespace

PackedWriter::PackedWriter(int descriptor, std::string path)
    : descriptor_(descriptor), path_(std::move(path)), context_(ZSTD_createCCtx()) {
  // Blocks have a checksum of ours, and their sizes stand in front of them.
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_contentSizeFlag, 0);
}

PackedWriter::~PackedWriter() { ZSTD_freeCCtx(context_); }

void PackedWriter::AddRawStrings(const format::Header& header, const char* strings, uint64_t bytes) {
  // They must lie where their indices say that they do.
  if (header.regions[format::kRegionStrings].offset != sizeof(format::Header)) return;
  uint64_t end = 0;
  for (uint32_t unit : {header.exe, header.host, header.options})
    end = std::max(end, EndOfString(unit, strings, bytes));
  if (end > std::min(bytes, kMostRawStringBytes)) return;
  WriteAt(sizeof(format::Header), strings, end);
  packed_offset_ = offset_ = sizeof(format::Header) + end;
}

void PackedWriter::Add(uint32_t region, uint64_t offset, const char* bytes, uint64_t count) {
  const uint64_t record_bytes = RecordBytesOf(region);
  if (record_bytes == 0) return AddPlain(region, offset, bytes, count);
  const uint64_t at_once = kPackedUnitBytes / record_bytes;
  if (region == format::kRegionSites) RememberStacks(bytes, count / record_bytes);
  for (uint64_t first = 0, records = count / record_bytes; first < records; first += at_once) {
    const uint64_t piece = std::min(at_once, records - first);
    text_.clear();
    if (!EncodeRecords(region, bytes + first * record_bytes, piece, &text_)) continue;
    Write({.region = static_cast<uint16_t>(region),
           .encoding = kPackedRecords,
           .first = offset / record_bytes + first,
           .count = piece},
          text_);
  }
}

void PackedWriter::AddPlain(uint32_t region, uint64_t offset, const char* bytes, uint64_t count) {
  for (uint64_t at = 0; at < count; at += kPackedUnitBytes) {
    uint64_t piece = std::min(kPackedUnitBytes, count - at);
    while (piece > 0 && bytes[at + piece - 1] == 0) piece--;
    if (piece == 0) continue;
    text_.assign(bytes + at, piece);
    Write({.region = static_cast<uint16_t>(region), .encoding = kPackedPlain, .first = offset + at, .count = piece},
          text_);
  }
}

void PackedWriter::RememberStacks(const char* sites, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    format::SiteRecord site;
    memcpy(&site, sites + i * sizeof(site), sizeof(site));
    if (site.state == format::kReady && site.frame_count > 0 && site.frame_count <= kMaxStackWords)
      stacks_.push_back({site.frame_start, site.frame_count});
  }
}

void PackedWriter::AddStacks(ReadWords read, uint64_t words_in_region) {
  std::sort(stacks_.begin(), stacks_.end(), [](const StackPlace& a, const StackPlace& b) { return a.start < b.start; });
  std::vector<StackPlace> together;
  uint64_t end = 0;
  for (const StackPlace& stack : stacks_) {
    // Sites do not share frames: what overlaps is damage.
    if (stack.start < end || stack.start > words_in_region || stack.count > words_in_region - stack.start) continue;
    end = stack.start + stack.count;
    if (!together.empty() && end - together.front().start > kStackWords) {
      AddStackBlock(together, read);
      together.clear();
    }
    together.push_back(stack);
  }
  if (!together.empty()) AddStackBlock(together, read);
}

void PackedWriter::AddStackBlock(absl::Span<const StackPlace> stacks, ReadWords read) {
  const uint64_t first = stacks.front().start, count = stacks.back().start + stacks.back().count - first;
  std::vector<uint64_t> words(count);
  if (!read(first, count, words.data())) return;
  text_.clear();
  EncodeStacks(stacks, words.data(), first, &text_);
  Write({.region = format::kRegionFrames, .encoding = kPackedStacks, .first = first, .count = count}, text_);
}

void PackedWriter::BackTo(const Mark& mark) {
  offset_ = mark.offset;
  blocks_ = mark.blocks;
  stacks_.resize(mark.stacks);
}

void PackedWriter::Write(PackedBlock block, const std::string& text) {
  packed_.resize(ZSTD_compressBound(text.size()));
  const size_t stored = ZSTD_compress2(context_, packed_.data(), packed_.size(), text.data(), text.size());
  if (ZSTD_isError(stored)) {
    if (status_.ok()) status_ = absl::InternalError(absl::StrCat(path_, ": zstd: ", ZSTD_getErrorName(stored)));
    return;
  }
  block.magic = kPackedBlockMagic;
  block.stored_bytes = static_cast<uint32_t>(stored);
  block.text_bytes = static_cast<uint32_t>(text.size());
  block.stored_check = PackedStoredCheck(block, packed_.data());
  block.header_check = PackedHeaderCheck(block);
  WriteAt(offset_, reinterpret_cast<const char*>(&block), sizeof(block));
  WriteAt(offset_ + sizeof(block), packed_.data(), stored);
  offset_ += sizeof(block) + stored;
  blocks_++;
}

void PackedWriter::WriteAt(uint64_t offset, const char* bytes, uint64_t count) {
  while (count > 0 && status_.ok()) {
    const ssize_t done = pwrite(descriptor_, bytes, count, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      status_ = absl::InternalError(absl::StrCat("cannot write ", path_, ": ", strerror(done < 0 ? errno : ENOSPC)));
      return;
    }
    offset += done;
    bytes += done;
    count -= done;
  }
}

absl::Status PackedWriter::Finish(format::Header* header) {
  Write({.encoding = kPackedEnd, .first = blocks_}, "");
  header->version = format::kPackedVersion;
  header->packed_offset = packed_offset_;
  WriteAt(0, reinterpret_cast<const char*>(header), sizeof(*header));
  if (status_.ok() && ftruncate(descriptor_, static_cast<off_t>(offset_)) != 0)
    status_ = absl::InternalError(absl::StrCat("cannot write ", path_, ": ", strerror(errno)));
  return status_;
}

}  // namespace cadastre
