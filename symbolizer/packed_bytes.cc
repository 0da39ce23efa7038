#include "symbolizer/packed_bytes.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "interposer/profile_format.h"
#include "symbolizer/packed_codec.h"
#include "symbolizer/packed_profile.h"
#include "symbolizer/record_columns.h"
#include "symbolizer/stack_columns.h"

namespace cadastre {
namespace {

constexpr uint32_t kKinds = format::kRegionProcess + 1;

// The blocks of a file that are whole, and what can be said of the others.
class Blocks {
 public:
  struct Block {
    PackedBlock facts;
    const char* stored;
  };

  Blocks(const format::Header& header, const char* bytes, uint64_t size) : header_(header) {
    uint64_t at = 0, whole = 0, damaged = 0;
    bool is_between = false;  // in damage that was counted
    while (size - at >= sizeof(PackedBlock)) {
      PackedBlock block;
      memcpy(&block, bytes + at, sizeof(block));
      if (block.magic != kPackedBlockMagic || block.header_check != PackedHeaderCheck(block) ||
          block.stored_bytes > size - at - sizeof(block)) {
        // How long it was is not known: on to what may be the next one.
        damaged += is_between ? 0 : 1;
        is_between = true;
        at++;
        const char* next =
            static_cast<const char*>(memmem(bytes + at, size - at, &kPackedBlockMagic, sizeof(kPackedBlockMagic)));
        at = next == nullptr ? size : next - bytes;
        continue;
      }
      is_between = false;
      if (block.encoding == kPackedEnd) {
        const uint64_t lost = block.first > whole ? block.first - whole : damaged;
        if (lost > 0) damage_ = absl::StrCat(lost, " of the file's ", whole + lost, " blocks are damaged");
        return;
      }
      Take(block, bytes + at + sizeof(block)) ? whole++ : damaged++;
      at += sizeof(block) + block.stored_bytes;
    }
    damage_ = absl::StrCat("the file is cut at ", header.packed_offset + size, " bytes: ", whole, " blocks are whole",
                           damaged > 0 ? absl::StrCat(", ", damaged, " damaged") : "");
  }

  const std::string& damage() const { return damage_; }
  const std::vector<Block>& Of(uint32_t kind) const { return of_kind_[kind]; }

 private:
  bool Take(const PackedBlock& block, const char* stored) {
    if (block.stored_check != PackedStoredCheck(block, stored) || block.region >= kKinds) return false;
    const uint64_t unit = PackedUnitOf(block), room = header_.regions[block.region].bytes;
    std::vector<Block>& others = of_kind_[block.region];
    if (unit == 0 || block.text_bytes > kMaxPackedTextBytes || block.count > kMaxPackedBlockBytes / unit ||
        block.first > room / unit || block.count > room / unit - block.first ||
        block.stored_bytes < LeastStoredBytes(block))
      return false;
    if (!others.empty()) {
      const PackedBlock& last = others.back().facts;
      if (block.first * unit < (last.first + last.count) * PackedUnitOf(last)) return false;
    }
    others.push_back({block, stored});
    return true;
  }

  const format::Header& header_;
  std::vector<Block> of_kind_[kKinds];
  std::string damage_;
};

class PackedBytes : public ProfileBytes {
 public:
  PackedBytes(const format::Header& header, LoadedRegion file)
      : header_(header), file_(std::move(file)), blocks_(header_, file_.data(), file_.bytes()) {}

  uint64_t size() const override { return header_.file_bytes; }
  bool may_change() const override { return false; }
  std::string damage() const override { return blocks_.damage(); }

  LoadedRegion Load(uint64_t offset, uint64_t bytes) override {
    if (offset < sizeof(header_)) {
      bytes = std::min(bytes, sizeof(header_) - offset);
      return LoadedRegion(reinterpret_cast<const char*>(&header_) + offset, bytes, {{0, bytes}}, nullptr);
    }
    for (uint32_t kind = 0; kind < kKinds; kind++) {
      const format::Region& region = header_.regions[kind];
      if (offset < region.offset || offset - region.offset >= region.bytes) continue;
      return LoadFrom(kind, offset - region.offset, std::min(bytes, region.bytes - (offset - region.offset)));
    }
    return LoadedRegion();
  }

 private:
  // [from, from + bytes) of the region.
  LoadedRegion LoadFrom(uint32_t kind, uint64_t from, uint64_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return LoadedRegion();
    std::shared_ptr<void> owner(memory, [bytes](void* address) { munmap(address, bytes); });
    std::vector<Extent> extents;
    for (const Blocks::Block& block : blocks_.Of(kind)) {
      const uint64_t unit = PackedUnitOf(block.facts);
      const Extent place = {block.facts.first * unit, (block.facts.first + block.facts.count) * unit};
      const Extent part = {std::max(place.begin, from), std::min(place.end, from + bytes)};
      if (part.begin >= part.end) continue;
      std::vector<char> unpacked(place.end - place.begin);
      if (!Unpack(block, unpacked.data())) continue;
      memcpy(static_cast<char*>(memory) + (part.begin - from), unpacked.data() + (part.begin - place.begin),
             part.end - part.begin);
      if (!extents.empty() && extents.back().end == part.begin - from) {
        extents.back().end = part.end - from;
      } else {
        extents.push_back({part.begin - from, part.end - from});
      }
    }
    return LoadedRegion(static_cast<const char*>(memory), bytes, std::move(extents), std::move(owner));
  }

  // `to` is zeros, as long as the block says. A checksum says that these are the bytes that were written, not that
  // they make sense.
  bool Unpack(const Blocks::Block& block, char* to) {
    text_.resize(block.facts.text_bytes);
    if (!Uncompress(block.facts.codec, block.stored, block.facts.stored_bytes, &text_)) return false;
    switch (block.facts.encoding) {
      case kPackedPlain:
        if (text_.size() != block.facts.count) return false;
        memcpy(to, text_.data(), text_.size());
        return true;
      case kPackedRecords:
        return DecodeRecords(header_.version, block.facts.region, text_, to, block.facts.count);
      default:
        return DecodeStacks(text_, reinterpret_cast<uint64_t*>(to), block.facts.count);
    }
  }

  const format::Header header_;
  const LoadedRegion file_;
  const Blocks blocks_;
  std::string text_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ProfileBytes>> Unpacked(const std::string& path, std::unique_ptr<ProfileBytes> file) {
  format::Header header;
  LoadedRegion first = file->Load(0, sizeof(header));
  if (first.bytes() < sizeof(header)) return file;
  memcpy(&header, first.data(), sizeof(header));
  if (memcmp(header.magic, format::kMagic, sizeof(format::kMagic)) != 0 || !format::IsPackedVersion(header.version))
    return file;
  const std::string damaged = absl::StrCat(path, ": the header of a packed profile is damaged: ");
  if (header.packed_offset < sizeof(header) || header.packed_offset > file->size()) {
    return absl::DataLossError(
        absl::StrCat(damaged, "its blocks begin at ", header.packed_offset, " of ", file->size(), " bytes"));
  }
  uint64_t total = 0;
  for (const format::Region& region : header.regions) {
    total += std::min(region.bytes, kMaxUnpackedBytes + 1);
    if (total > kMaxUnpackedBytes)
      return absl::DataLossError(absl::StrCat(damaged, "its regions are larger than a profile can be"));
  }
  LoadedRegion blocks = file->Load(header.packed_offset, file->size() - header.packed_offset);
  return std::make_unique<PackedBytes>(header, std::move(blocks));
}

}  // namespace cadastre
