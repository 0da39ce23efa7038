#include "symbolizer/packed_writer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/record_columns.h"

namespace cadastre {
namespace {

constexpr uint64_t kStackWords = kPackedStackBytes / 8;
constexpr size_t kLiveAtOnce = 1 << 18;    // 12 MiB; sorting takes half of that again
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

PackedWriter::PackedWriter(int descriptor, std::string path, Effort effort)
    : descriptor_(descriptor), path_(std::move(path)), effort_(effort) {}

void PackedWriter::Begin(const format::Header& header, const char* strings, uint64_t bytes) {
  peak_epoch_ = header.peak_epoch;
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
  if (region == format::kRegionLive) return AddLive(bytes, count / record_bytes);
  WriteLive();
  if (record_bytes == 0) return AddPlain(region, offset, bytes, count);
  if (region == format::kRegionSites) return AddSites(offset / record_bytes, bytes, count / record_bytes);
  WriteRecords(region, offset / record_bytes, bytes, count / record_bytes);
}

void PackedWriter::AddPlain(uint32_t region, uint64_t offset, const char* bytes, uint64_t count) {
  for (uint64_t at = 0; at < count; at += kPackedPlainBytes) {
    uint64_t piece = std::min(kPackedPlainBytes, count - at);
    while (piece > 0 && bytes[at + piece - 1] == 0) piece--;
    if (piece == 0) continue;
    columns_.Clear();
    columns_.text.assign(bytes + at, piece);
    Write({.region = static_cast<uint16_t>(region), .encoding = kPackedPlain, .first = offset + at, .count = piece});
  }
}

void PackedWriter::AddLive(const char* records, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    format::LiveRecord record;
    memcpy(&record, records + i * sizeof(record), sizeof(record));
    if ((record.state & format::kStateMask) == format::kFree) continue;
    live_.push_back(record);
    if (live_.size() == kLiveAtOnce) WriteLive();
  }
}

// In order of address: neighbours are alike, and most of them touch. In which slot a sample lay means nothing.
void PackedWriter::WriteLive() {
  if (live_.empty()) return;
  std::stable_sort(live_.begin(), live_.end(),
                   [](const format::LiveRecord& a, const format::LiveRecord& b) { return a.address < b.address; });
  WriteRecords(format::kRegionLive, live_written_, reinterpret_cast<const char*>(live_.data()), live_.size());
  live_written_ += live_.size();
  live_.clear();
}

void PackedWriter::AddSites(uint64_t first, const char* records, uint64_t count) {
  std::vector<format::SiteRecord> sites(count);
  memcpy(sites.data(), records, count * sizeof(format::SiteRecord));
  for (format::SiteRecord& site : sites) {
    if (site.state == format::kReady && site.frame_count > 0 && site.frame_count <= kMaxStackWords)
      stacks_.push_back({site.frame_start, site.frame_count});
    // Nothing has changed here since the peak: what was live at an earlier one nobody asks for. (A peak that came after
    // the header was read is a later one.)
    if (site.peak_epoch >= peak_epoch_) continue;
    site.peak_epoch = 0;
    site.live_at_peak_bytes = site.live_bytes;
  }
  WriteRecords(format::kRegionSites, first, reinterpret_cast<const char*>(sites.data()), count);
}

void PackedWriter::WriteRecords(uint32_t region, uint64_t first, const char* records, uint64_t count) {
  const uint64_t record_bytes = RecordBytesOf(region), at_once = kPackedRecordBytes / record_bytes;
  for (uint64_t done = 0; done < count; done += at_once) {
    const uint64_t piece = std::min(at_once, count - done);
    columns_.Clear();
    if (!EncodeRecords(region, records + done * record_bytes, piece, &columns_)) continue;
    Write({.region = static_cast<uint16_t>(region), .encoding = kPackedRecords, .first = first + done, .count = piece});
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
  columns_.Clear();
  EncodeStacks(stacks, words.data(), first, &columns_);
  Write({.region = format::kRegionFrames, .encoding = kPackedStacks, .first = first, .count = count});
}

PackedWriter::Mark PackedWriter::Now() {
  WriteLive();
  return {offset_, blocks_, stacks_.size()};
}

void PackedWriter::BackTo(const Mark& mark) {
  offset_ = mark.offset;
  blocks_ = mark.blocks;
  stacks_.resize(mark.stacks);
}

void PackedWriter::Write(PackedBlock block) {
  const Effort effort = text_bytes_ < kPatientTextBytes ? effort_ : Effort::kQuick;
  text_bytes_ += columns_.text.size();
  if (absl::Status status = compressor_.Compress(columns_, effort, &packed_); !status.ok()) {
    status_.Update(absl::Status(status.code(), absl::StrCat(path_, ": ", status.message())));
    return;
  }
  PadTo(LeastStoredBytes(block), CodecOf(effort), &packed_);
  block.codec = CodecOf(effort);
  block.magic = kPackedBlockMagic;
  block.stored_bytes = static_cast<uint32_t>(packed_.size());
  block.text_bytes = static_cast<uint32_t>(columns_.text.size());
  block.stored_check = PackedStoredCheck(block, packed_.data());
  block.header_check = PackedHeaderCheck(block);
  WriteAt(offset_, reinterpret_cast<const char*>(&block), sizeof(block));
  WriteAt(offset_ + sizeof(block), packed_.data(), packed_.size());
  offset_ += sizeof(block) + packed_.size();
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
  WriteLive();
  columns_.Clear();
  Write({.encoding = kPackedEnd, .first = blocks_});
  header->version = format::kPackedVersion;
  header->packed_offset = packed_offset_;
  WriteAt(0, reinterpret_cast<const char*>(header), sizeof(*header));
  if (status_.ok() && ftruncate(descriptor_, static_cast<off_t>(offset_)) != 0)
    status_ = absl::InternalError(absl::StrCat("cannot write ", path_, ": ", strerror(errno)));
  return status_;
}

}  // namespace cadastre
