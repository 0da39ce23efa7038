// What is saved is packed. Nothing of it may be lost, and what is damaged or cut may cost the records in it and no
// others.
#include "symbolizer/packed_profile.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "symbolizer/packed_again.h"
#include "symbolizer/packed_codec.h"
#include "symbolizer/packed_writer.h"
#include "symbolizer/profile.h"
#include "symbolizer/symbolizer.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using testing::ProfileBuilder;

constexpr uint32_t kSites = 20000, kLive = 50000;  // several blocks of each

// A service: stacks that share their roots, threads, mappings, a pending delta, a free slot and a torn one.
ProfileBuilder Service() {
  ProfileBuilder builder;
  builder.set_spare_pages(300);
  const uint32_t library = builder.AddLibrary("/opt/app/libbilling.so", "00112233");
  const uint32_t thread = builder.AddThread("worker");
  std::vector<uint32_t> sites;
  for (uint64_t i = 0; i < kSites; i++) {
    std::vector<uint64_t> frames;
    for (uint64_t depth = 0; depth < 10 + i % 20; depth++)
      frames.push_back(format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000 + (i >> depth) * 16 + depth));
    frames.push_back(builder.JavaFrame("com.acme.Shop.method" + std::to_string(i % 50), i % 7));
    sites.push_back(builder.AddSite(frames));
  }
  for (uint64_t i = 0; i < kLive; i++)
    builder.AddSample(sites[i * 7 % kSites], 0x7f0000000000 + 64 * (i * 7919 % kLive), 64 + i % 300, 1024 + i, i * 1000,
                      thread);
  builder.live(17).state = format::kFree;
  builder.live(18).state = format::kWriting;
  builder.AddMapping(sites[3], 0x10000, 0x20000, format::kMappingFile | 1);
  builder.AddMapping(sites[4], 0x30000, 0x50000, 3);
  builder.AddBuffer({{sites[2], 1, 65536, 10, 1.5}});
  return builder;
}

struct Folder : testing::TemporaryDirectory {
  std::string raw = *this / "raw.cad", packed = *this / "packed.cad";

  explicit Folder(const ProfileBuilder& builder) {
    REQUIRE(builder.WriteTo(raw));
    REQUIRE(WriteSymbolizedProfile(raw, packed, {}).ok());
  }
  std::string Bytes() const {
    std::ifstream file(packed, std::ios::binary);
    return (std::stringstream() << file.rdbuf()).str();
  }
};

format::Header HeaderOf(const std::string& bytes) {
  format::Header header;
  memcpy(&header, bytes.data(), sizeof(header));
  return header;
}

// Where each block begins; the end last.
std::vector<uint64_t> BlocksOf(const std::string& bytes) {
  std::vector<uint64_t> blocks;
  for (uint64_t at = HeaderOf(bytes).packed_offset; at < bytes.size();) {
    PackedBlock block;
    REQUIRE(bytes.size() - at >= sizeof(block));
    memcpy(&block, bytes.data() + at, sizeof(block));
    REQUIRE(block.magic == kPackedBlockMagic);
    blocks.push_back(at);
    at += sizeof(block) + block.stored_bytes;
  }
  return blocks;
}

Profile Parsed(const std::string& bytes) {
  absl::StatusOr<Profile> profile = ParseProfile("x.cad", bytes.data(), bytes.size());
  INFO(profile.status().message());
  REQUIRE(profile.ok());
  return *std::move(profile);
}

TEST_CASE("A packed profile says what the one before said, and is a fraction of it", "[packed_profile]") {
  Folder folder(Service());
  absl::StatusOr<Profile> raw = ReadProfile(folder.raw), packed = ReadProfile(folder.packed);
  REQUIRE(raw.ok());
  REQUIRE(packed.ok());
  CHECK(packed->incomplete == "");
  REQUIRE(raw->warnings.size() == 1);  // the torn slot; that there is no such library was found out by symbolizing
  CHECK(packed->warnings.front() == raw->warnings.front());
  CHECK(packed->losses.torn_records == raw->losses.torn_records);
  CHECK(packed->losses.torn_records == 1);
  CHECK(packed->exe == raw->exe);
  CHECK(packed->command == raw->command);
  CHECK(packed->java_names == raw->java_names);
  REQUIRE(packed->live.size() == raw->live.size());
  CHECK(packed->live.size() == kLive - 2);
  for (size_t i = 0; i < raw->live.size(); i++) {
    const LiveSample &a = raw->live[i], &b = packed->live[i];
    REQUIRE(std::tie(a.site, a.thread, a.context, a.address, a.size_bytes, a.weight_bytes, a.time_ns) ==
            std::tie(b.site, b.thread, b.context, b.address, b.size_bytes, b.weight_bytes, b.time_ns));
    if (i > 0) REQUIRE(raw->live[i - 1].address < a.address);
  }
  REQUIRE(packed->sites.size() == raw->sites.size());
  for (size_t i = 0; i < raw->sites.size(); i++) {
    const Site &a = raw->sites[i], &b = packed->sites[i];
    REQUIRE(a.frames == b.frames);
    REQUIRE(std::tie(a.id, a.kind, a.flags, a.samples, a.allocated_count, a.allocated_bytes, a.allocated_variance,
                     a.bytes_at_peak, a.own_peak_bytes, a.first_thread) ==
            std::tie(b.id, b.kind, b.flags, b.samples, b.allocated_count, b.allocated_bytes, b.allocated_variance,
                     b.bytes_at_peak, b.own_peak_bytes, b.first_thread));
  }
  REQUIRE(packed->mappings.size() == 2);
  CHECK(packed->mappings[1].end == 0x50000);
  CHECK(packed->mappings[1].site == raw->mappings[1].site);
  CHECK(packed->threads.at(1).name == "worker");
  CHECK(packed->libraries.at(1).build_id == "00112233");
  CHECK(std::filesystem::file_size(folder.packed) < std::filesystem::file_size(folder.raw) / 20);
}

// A program that allocates two kinds of objects in turn, in whatever slots: every allocation is recorded.
TEST_CASE("Blocks that touch cost next to nothing, in whatever slots their samples lie", "[packed_profile]") {
  ProfileBuilder builder;
  const uint32_t library = builder.AddLibrary("/opt/app/libbilling.so", "00112233");
  const uint32_t sites[] = {builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)}),
                            builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x2000)})};
  for (uint64_t i = 0; i < kLive; i++) {
    const uint64_t at = i * 7919 % kLive, size = at % 2 == 0 ? 24 : 100;
    builder.AddSample(sites[at % 2], 0x555500000010 + at / 2 * (32 + 112) + at % 2 * 32, size, size,
                      1'000'000'000 + at / 1000 * 4'000'000);
  }
  Folder folder(builder);
  absl::StatusOr<Profile> raw = ReadProfile(folder.raw), packed = ReadProfile(folder.packed);
  REQUIRE(raw.ok());
  REQUIRE(packed.ok());
  REQUIRE(packed->live.size() == kLive);
  for (size_t i = 0; i < kLive; i++) {
    const LiveSample &a = raw->live[i], &b = packed->live[i];
    REQUIRE(std::tie(a.site, a.address, a.size_bytes, a.weight_bytes, a.time_ns) ==
            std::tie(b.site, b.address, b.size_bytes, b.weight_bytes, b.time_ns));
  }
  uint64_t stored = 0;
  const std::string bytes = folder.Bytes();
  for (uint64_t at : BlocksOf(bytes)) {
    PackedBlock block;
    memcpy(&block, bytes.data() + at, sizeof(block));
    if (block.region == format::kRegionLive && block.encoding == kPackedRecords) stored += block.stored_bytes;
  }
  CHECK(stored < kLive / 8);
}

// bytes_at_peak is live_at_peak_bytes where peak_epoch is the header's, else live_bytes.
TEST_CASE("Of peaks that another one has followed nothing is kept, and no figure changes", "[packed_profile]") {
  auto packed_with_older = [](int64_t at_older_peak) {
    ProfileBuilder builder = Service();
    builder.header().peak_epoch = 7;
    for (uint32_t i = 1; i < kSites; i++) {
      format::SiteRecord& site = builder.site(i);
      site.live_bytes = 5000 + i;
      site.peak_epoch = 3 + i % 5;
      site.live_at_peak_bytes = site.peak_epoch == 7 ? 9000 + i : at_older_peak + i * 7919 % 1000;
    }
    Folder folder(builder);
    absl::StatusOr<Profile> raw = ReadProfile(folder.raw), packed = ReadProfile(folder.packed);
    REQUIRE(raw.ok());
    REQUIRE(packed.ok());
    REQUIRE(packed->sites.size() == raw->sites.size());
    std::set<uint64_t> at_peak;
    for (size_t i = 0; i < raw->sites.size(); i++) {
      REQUIRE(packed->sites[i].bytes_at_peak == raw->sites[i].bytes_at_peak);
      at_peak.insert(raw->sites[i].bytes_at_peak);
    }
    CHECK(at_peak.contains(9000 + 4));  // epoch 7
    CHECK(at_peak.contains(5000 + 5));
    return std::filesystem::file_size(folder.packed);
  };
  CHECK(packed_with_older(70'000) == packed_with_older(80'000));
}

TEST_CASE("A packed profile that is cut anywhere gives all blocks that are whole", "[packed_profile]") {
  Folder folder(Service());
  const std::string bytes = folder.Bytes();
  const std::vector<uint64_t> blocks = BlocksOf(bytes);
  REQUIRE(blocks.size() > 10);
  size_t before = 0;
  for (uint64_t block : blocks) {
    for (uint64_t cut : {block + 1, block + 39, block + 41}) {
      if (cut >= bytes.size()) continue;
      const Profile profile = Parsed(bytes.substr(0, cut));
      CHECK(profile.incomplete.find("the file is cut at ") == 0);
      CHECK(profile.live.size() <= kLive - 2);
    }
    // Live samples come first: they grow with each block, as soon as their sites are there.
    const Profile profile = Parsed(bytes.substr(0, block));
    CHECK(profile.incomplete.find("the file is cut at ") == 0);
    CHECK(profile.live.size() >= before);
    before = profile.live.size();
  }
  CHECK(before == kLive - 2);
  const std::string header = bytes.substr(0, HeaderOf(bytes).packed_offset);
  CHECK(Parsed(header).live.empty());
}

// As a snapshot is whose process goes on.
std::string PackedQuickly(const std::string& bytes) {
  std::string quick = bytes.substr(0, HeaderOf(bytes).packed_offset);
  BlockCompressor compressor;
  for (uint64_t at : BlocksOf(bytes)) {
    PackedBlock block;
    memcpy(&block, bytes.data() + at, sizeof(block));
    ColumnText columns;
    columns.text.resize(block.text_bytes);
    REQUIRE(Uncompress(block.codec, bytes.data() + at + sizeof(block), block.stored_bytes, &columns.text));
    std::string stored;
    REQUIRE(compressor.Compress(columns, Effort::kQuick, &stored).ok());
    PadTo(LeastStoredBytes(block), kCodecZstd, &stored);
    block.codec = kCodecZstd;
    block.stored_bytes = static_cast<uint32_t>(stored.size());
    block.stored_check = PackedStoredCheck(block, stored.data());
    block.header_check = PackedHeaderCheck(block);
    quick.append(reinterpret_cast<const char*>(&block), sizeof(block)).append(stored);
  }
  return quick;
}

TEST_CASE("Packed again a profile says the same, in the same blocks, and of a damaged one nothing is made",
          "[packed_profile]") {
  const std::string quick = PackedQuickly(Folder(Service()).Bytes());
  absl::StatusOr<std::string> again = PackedAgain(quick);
  REQUIRE(again.ok());
  CHECK(again->size() < quick.size() * 9 / 10);
  CHECK(BlocksOf(*again).size() == BlocksOf(quick).size());
  const Profile before = Parsed(quick), after = Parsed(*again);
  CHECK(after.incomplete == "");
  CHECK(after.exe == before.exe);
  REQUIRE(after.sites.size() == before.sites.size());
  for (size_t i = 0; i < after.sites.size(); i++) REQUIRE(after.sites[i].frames == before.sites[i].frames);
  REQUIRE(after.live.size() == before.live.size());
  for (size_t i = 0; i < after.live.size(); i++) REQUIRE(after.live[i].address == before.live[i].address);
  std::string old = quick;
  format::Header header = HeaderOf(quick);
  header.version = format::kOldestPackedVersion;
  memcpy(old.data(), &header, sizeof(header));
  CHECK_FALSE(PackedAgain(old).ok());
  CHECK_FALSE(PackedAgain("").ok());
  CHECK_FALSE(PackedAgain(std::string_view(quick).substr(0, quick.size() - 1)).ok());
  CHECK_FALSE(PackedAgain(quick + "x").ok());
  for (uint64_t block : BlocksOf(quick)) {
    std::string flipped = quick;
    flipped[block + 20] ^= 1;
    CHECK_FALSE(PackedAgain(flipped).ok());
  }
}

TEST_CASE("A flipped byte costs its block and no other", "[packed_profile]") {
  Folder folder(Service());
  const std::string bytes = folder.Bytes();
  const std::vector<uint64_t> blocks = BlocksOf(bytes);
  const size_t sites = Parsed(bytes).sites.size();
  for (size_t i = 0; i + 1 < blocks.size(); i++) {
    // Each place in every third block: to read the file again takes a while where sanitizers look on.
    const uint64_t places[] = {blocks[i],      blocks[i] + 5,  blocks[i] + 14,
                               blocks[i] + 16, blocks[i] + 40, blocks[i + 1] - 1};
    for (uint64_t at : {places[i % 3], places[3 + i % 3]}) {
      std::string flipped = bytes;
      flipped[at] ^= 0x10;
      const Profile profile = Parsed(flipped);
      INFO("block " << i << ", byte " << at - blocks[i] << ": " << profile.incomplete);
      CHECK(profile.incomplete == absl::StrCat("1 of the file's ", blocks.size() - 1, " blocks are damaged"));
      PackedBlock block;
      memcpy(&block, bytes.data() + blocks[i], sizeof(block));
      const bool of_live = block.region == format::kRegionLive, of_stacks = block.region == format::kRegionFrames;
      const bool of_sites = block.region == format::kRegionSites;
      if (!of_sites && !of_stacks) CHECK(profile.sites.size() == sites);
      if (of_live) CHECK(profile.live.size() + block.count >= kLive - 2);
      if (of_live) CHECK(profile.live.size() < kLive - 2);
    }
  }
}

TEST_CASE("What is larger than a profile can be is refused", "[packed_profile]") {
  Folder folder(Service());
  std::string bytes = folder.Bytes();
  format::Header header = HeaderOf(bytes);
  auto message = [&] {
    memcpy(bytes.data(), &header, sizeof(header));
    return std::string(ParseProfile("x.cad", bytes.data(), bytes.size()).status().message());
  };
  header.regions[format::kRegionLive].bytes = UINT64_MAX;
  CHECK(message() == "x.cad: the header of a packed profile is damaged: its regions are larger than a profile can be");
  header = HeaderOf(folder.Bytes());
  header.packed_offset = bytes.size() + 1;
  CHECK(message().find("its blocks begin at ") != std::string::npos);
  header = HeaderOf(folder.Bytes());
  header.version = format::kPackedVersion + 1;
  CHECK(message() == "x.cad: version 6 at offset 8 is not supported; this program reads versions 1 and 3 to 5");
}

TEST_CASE("A block that unfolds to more than it may is not unpacked", "[packed_profile]") {
  Folder folder(Service());
  const std::string path = folder / "bomb.cad";
  format::Header header = HeaderOf(folder.Bytes());
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  // The same records again and again: blocks of one region must ascend.
  PackedWriter out(descriptor, path, Effort::kThorough);
  const std::string zeros(kPackedPlainBytes, '\1');
  for (int i = 0; i < 100; i++) out.Add(format::kRegionStrings, 0, zeros.data(), zeros.size());
  REQUIRE(out.Finish(&header).ok());
  close(descriptor);
  absl::StatusOr<Profile> profile = ReadProfile(path);
  REQUIRE(profile.ok());
  CHECK(profile->incomplete == "99 of the file's 100 blocks are damaged");
}

// zstd makes some bytes of any number of equal ones, and a checksum is no signature.
TEST_CASE("A block unfolds to no more than its stored bytes answer for", "[packed_profile]") {
  format::Header header = HeaderOf(Folder(Service()).Bytes());
  header.packed_offset = sizeof(header);
  const std::string text(kPackedPlainBytes, '\1');
  std::string small(ZSTD_compressBound(text.size()), '\0');
  small.resize(ZSTD_compress(small.data(), small.size(), text.data(), text.size(), 3));
  auto incomplete_with = [&](uint64_t stored_bytes) {
    const uint32_t skipped[] = {0x184d2a50, static_cast<uint32_t>(stored_bytes - small.size() - 8)};
    std::string stored = small;
    stored.append(reinterpret_cast<const char*>(skipped), sizeof(skipped)).resize(stored_bytes);
    PackedBlock block{.magic = kPackedBlockMagic,
                      .region = format::kRegionStrings,
                      .encoding = kPackedPlain,
                      .stored_bytes = static_cast<uint32_t>(stored.size()),
                      .text_bytes = static_cast<uint32_t>(text.size()),
                      .count = text.size()};
    block.stored_check = PackedStoredCheck(block, stored.data());
    block.header_check = PackedHeaderCheck(block);
    std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
    file.append(reinterpret_cast<const char*>(&block), sizeof(block)).append(stored);
    return Parsed(file).incomplete;
  };
  REQUIRE(small.size() + 8 < text.size() / kMostUnfolded - 1);
  CHECK(incomplete_with(text.size() / kMostUnfolded - 1).ends_with(": 0 blocks are whole, 1 damaged"));
  CHECK(incomplete_with(text.size() / kMostUnfolded).ends_with(": 1 blocks are whole"));
}

// 1,000 sites that allocate blocks of one size each and hold some of them.
TEST_CASE("A site of blocks of one size costs what its counts cost", "[packed_profile]") {
  ProfileBuilder builder;
  builder.header().peak_epoch = 3;
  const uint32_t library = builder.AddLibrary("/opt/app/libbilling.so", "00112233");
  for (uint64_t i = 0; i < 1000; i++) {
    const uint64_t bytes = 1000 + i * 7919 % 8999, samples = 2 + i * 31 % 5;
    format::SiteRecord& site =
        builder.site(builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)}));
    site.samples = samples;
    site.allocated_bytes = samples * bytes;
    site.live_bytes = static_cast<int64_t>(i * 17 % samples * bytes);
    site.live_at_peak_bytes = static_cast<int64_t>(i * 13 % samples * bytes);
    site.peak_epoch = 3;
    site.own_peak_bytes = static_cast<int64_t>((samples - 1) * bytes);
  }
  const std::string bytes = Folder(builder).Bytes();
  uint64_t stored = 0;
  for (uint64_t at : BlocksOf(bytes)) {
    PackedBlock block;
    memcpy(&block, bytes.data() + at, sizeof(block));
    if (block.region == format::kRegionSites) stored += block.stored_bytes;
  }
  // 13 bits that say which size, and 2 for each of four counts.
  CHECK(stored < 1000 * (13 + 4 * 3) / 8);
}

}  // namespace
}  // namespace cadastre
