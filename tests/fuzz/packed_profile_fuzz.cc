// Blocks of a packed profile with right checksums: who made the file may have meant it.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <algorithm>

#include "symbolizer/packed_codec.h"
#include "symbolizer/packed_profile.h"
#include "symbolizer/profile.h"
#include "symbolizer/record_columns.h"
#include "symbolizer/stack_columns.h"
#include "tests/fuzz/corpus_runner.h"
#include "tests/support/profile_builder.h"

namespace cadastre::testing {
// In Recipe::encoding: which codec, and whether what follows is text or what a codec is to have made of one.
constexpr uint8_t kLzma = 0x40, kAsStored = 0x80, kEncodingMask = 0x3f;

// An input is a row of these, each with its text behind it.
struct Recipe {
  uint8_t region, encoding;
  uint16_t first, count, text_bytes;
};

namespace {

std::string Piece(uint32_t region, PackedEncoding encoding, uint64_t count, const std::string& text) {
  const Recipe recipe = {static_cast<uint8_t>(region), static_cast<uint8_t>(encoding), 0, static_cast<uint16_t>(count),
                         static_cast<uint16_t>(text.size())};
  return std::string(reinterpret_cast<const char*>(&recipe), sizeof(recipe)) + text;
}

ProfileBuilder FiveSites() {
  ProfileBuilder builder;
  const uint32_t library = builder.AddLibrary("/usr/lib/libfuzz.so", "0011223344");
  const uint32_t thread = builder.AddThread("worker");
  for (uint64_t i = 0; i < 5; i++) {
    const uint32_t site = builder.AddSite(
        {format::MakeLibraryFrame(format::kFrameReturn, library, 0x1234 + i), builder.JavaFrame("com.acme.A.b", 7)});
    builder.AddSample(site, 0x1000 * (i + 1), 100, 1000, 5, thread);
    builder.AddMapping(site, 0x100000 * (i + 1), 0x100000 * (i + 1) + 4096, 3);
  }
  return builder;
}

}  // namespace

format::Header PackedHeader() {
  format::Header header;
  memcpy(&header, FiveSites().Build().data(), sizeof(header));
  header.version = format::kPackedVersion;
  header.packed_offset = sizeof(header);
  return header;
}

std::vector<std::string> FuzzSeeds() {
  const std::string raw = FiveSites().Build();
  const format::Header header = PackedHeader();
  std::string whole;
  for (uint32_t kind = 0; kind < format::kRegionCount; kind++) {
    const format::Region& region = header.regions[kind];
    const std::string bytes = raw.substr(region.offset, region.bytes);
    ColumnText columns;
    if (const uint64_t record_bytes = RecordBytesOf(kind); record_bytes != 0) {
      if (EncodeRecords(kind, bytes.data(), region.bytes / record_bytes, &columns))
        whole += Piece(kind, kPackedRecords, region.bytes / record_bytes, columns.text);
    } else if (kind == format::kRegionFrames) {
      const StackPlace places[] = {{0, 2}, {2, 2}, {4, 2}, {6, 2}, {8, 2}};
      EncodeStacks(places, reinterpret_cast<const uint64_t*>(bytes.data()), 0, &columns);
      whole += Piece(kind, kPackedStacks, 10, columns.text);
    } else {
      whole += Piece(kind, kPackedPlain, 512, bytes.substr(0, 512));
    }
  }
  std::string by_lzma = whole;
  by_lzma[offsetof(Recipe, encoding)] |= static_cast<char>(kLzma);  // of the first one
  return {whole, by_lzma};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace cadastre;
  format::Header header = testing::PackedHeader();
  if (size > 0 && bytes[size - 1] % 2 == 1) header.version = format::kOldestPackedVersion;
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  uint64_t blocks = 0;
  auto add = [&](PackedBlock block, const std::string& stored) {
    block.magic = kPackedBlockMagic;
    block.stored_bytes = stored.size();
    block.stored_check = PackedStoredCheck(block, stored.data());
    block.header_check = PackedHeaderCheck(block);
    file.append(reinterpret_cast<const char*>(&block), sizeof(block)).append(stored);
  };
  BlockCompressor compressor;
  testing::Recipe recipe;
  for (size_t at = 0; size - at >= sizeof(recipe); blocks++) {
    memcpy(&recipe, bytes + at, sizeof(recipe));
    at += sizeof(recipe);
    const size_t text_bytes = std::min<size_t>(recipe.text_bytes, size - at);
    const std::string text(reinterpret_cast<const char*>(bytes) + at, text_bytes);
    at += text_bytes;
    const Effort effort = (recipe.encoding & testing::kLzma) != 0 ? Effort::kThorough : Effort::kQuick;
    std::string stored = text;
    if ((recipe.encoding & testing::kAsStored) == 0 && !compressor.Compress({text, {}}, effort, &stored).ok()) abort();
    add({.region = recipe.region,
         .encoding = static_cast<uint8_t>(recipe.encoding & testing::kEncodingMask),
         .codec = CodecOf(effort),
         .text_bytes = (recipe.encoding & testing::kAsStored) != 0 ? recipe.count : static_cast<uint32_t>(text_bytes),
         .first = recipe.first,
         .count = recipe.count},
        stored);
  }
  add({.encoding = kPackedEnd, .first = blocks}, "");
  absl::StatusOr<Profile> profile = ParseProfile("/nowhere/fuzz.cad", file.data(), file.size());
  if (!profile.ok()) abort();  // its header is sound
  for (const LiveSample& sample : profile->live) {
    if (sample.site >= profile->sites.size() || sample.thread >= profile->threads.size()) abort();
  }
  for (const Site& site : profile->sites) {
    if (site.frames.empty()) abort();
  }
  return 0;
}
