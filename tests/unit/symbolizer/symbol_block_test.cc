// Names that travel with a profile to a machine without the binaries: they must come back unchanged, or not at all.
#include "symbolizer/symbol_block.h"
#include "symbolizer/packed_text.h"

#include <cstring>
#include <random>
#include <string>

#include "tests/support/catch.h"

namespace cadastre {
namespace {

SymbolBlock Sample() {
  SymbolBlock block;
  for (uint64_t i = 0; i < 50; i++) {
    Frame inner, outer;
    inner.function = "acme::Inner" + std::to_string(i % 7);
    inner.file = "/src/inner.h";
    inner.line = static_cast<int>(i);
    inner.inlined = inner.resolved = true;
    inner.library = outer.library = "/usr/lib/libacme.so";
    inner.soname = outer.soname = "libacme.so.1";
    outer.function = "libacme.so+0x" + std::to_string(i);
    block.frames.push_back({0x1000'0000'0000'0000 + i, {inner, outer}});
  }
  block.warnings = {"one", "two"};
  return block;
}

TEST_CASE("Names and warnings come back as they were stored", "[symbol_block]") {
  SymbolBlock block = Sample();
  std::string bytes = WriteSymbolBlock(block) + std::string(500, '\0');  // regions are padded
  absl::StatusOr<SymbolBlock> again = ParseSymbolBlock(bytes.data(), bytes.size());
  REQUIRE(again.ok());
  CHECK(again->warnings == block.warnings);
  REQUIRE(again->frames.size() == 50);
  CHECK(again->frames[3].first == block.frames[3].first);
  REQUIRE(again->frames[3].second.size() == 2);
  const Frame& inner = again->frames[3].second[0];
  CHECK(inner.function == "acme::Inner3");
  CHECK(inner.file == "/src/inner.h");
  CHECK(inner.line == 3);
  CHECK(inner.inlined);
  CHECK(inner.resolved);
  CHECK(inner.soname == "libacme.so.1");
  CHECK_FALSE(again->frames[3].second[1].resolved);
  std::string empty = WriteSymbolBlock(SymbolBlock());
  REQUIRE(ParseSymbolBlock(empty.data(), empty.size()).ok());
}

TEST_CASE("A block cut at any byte or with any flipped bit is refused, never misread", "[symbol_block]") {
  std::string bytes = WriteSymbolBlock(Sample());
  for (size_t size = 0; size < bytes.size(); size++) REQUIRE_FALSE(ParseSymbolBlock(bytes.data(), size).ok());
  for (size_t bit = 0; bit < bytes.size() * 8; bit++) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    absl::StatusOr<SymbolBlock> block = ParseSymbolBlock(damaged.data(), damaged.size());
    // Some bits of zstd's frame header change nothing in the text; the checksum vouches for the rest.
    if (block.ok()) REQUIRE(block->frames.size() == 50);
  }
}

TEST_CASE("Other versions, lies about sizes and floods are refused", "[symbol_block]") {
  std::string bytes = WriteSymbolBlock(Sample());
  auto with = [&](size_t offset, uint64_t value, size_t size) {
    std::string other = bytes;
    memcpy(other.data() + offset, &value, size);
    absl::StatusOr<SymbolBlock> block = ParseSymbolBlock(other.data(), other.size());
    return block.ok() ? "no error" : std::string(block.status().message());
  };
  CHECK(with(0, 1, 4) == "bad magic");
  CHECK(with(offsetof(PackedHeader, version), 2, 4) == "version 2 is not supported");
  CHECK(with(offsetof(PackedHeader, text_bytes), UINT64_MAX, 8) == "it is too large");
  CHECK(with(offsetof(PackedHeader, text_bytes), 1, 8) == "its text is shorter or longer than it says");
  CHECK(with(offsetof(PackedHeader, stored_bytes), UINT64_MAX, 8) == "it is cut");
  CHECK(with(offsetof(PackedHeader, checksum), 1, 4) == "its checksum does not match");

  // A megabyte string that a million frames name would be a terabyte; a thousand are enough to see the limit.
  SymbolBlock flood;
  Frame frame;
  frame.function = std::string(1 << 20, 'x');
  for (uint64_t i = 0; i < 1100; i++) flood.frames.push_back({i, {frame}});
  std::string small = WriteSymbolBlock(flood);
  CHECK(small.size() < 100'000);
  CHECK_FALSE(ParseSymbolBlock(small.data(), small.size()).ok());
}

}  // namespace
}  // namespace cadastre
