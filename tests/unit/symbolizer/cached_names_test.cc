// A file of the symbol cache must come back as it was written, or not at all: a wrong name is worse than none.
#include "symbolizer/cached_names.h"

#include <cstddef>
#include <cstring>
#include <string>

#include "symbolizer/packed_frames.h"
#include "symbolizer/packed_text.h"
#include "tests/support/catch.h"

namespace cadastre {
namespace {

Frame Named(const std::string& function, int line) {
  Frame frame;
  frame.function = function;
  frame.file = "/src/index.cc";
  frame.line = line;
  frame.resolved = true;
  return frame;
}

CachedNames Sample() {
  CachedNames cached{.build_id = "9f3c", .sources = "library 4096 bytes", .soname = "libacme.so.1", .names = {}};
  for (uint64_t i = 0; i < 50; i++)
    cached.names.push_back({i * 0x123, {Named("acme::Index::add", static_cast<int>(i)), Named("main", 7)}});
  cached.names.push_back({UINT64_MAX, {}});  // nothing is known of it, and that is known
  return cached;
}

std::string ProblemOf(const std::string& bytes) {
  absl::StatusOr<CachedNames> cached = ParseCachedNames(bytes.data(), bytes.size());
  return cached.ok() ? "no error" : std::string(cached.status().message());
}

// A file whose checksum is right, whatever its text says.
std::string FileOf(const std::string& text) { return PackText(kCachedNamesMagic, kCachedNamesVersion, text); }

TEST_CASE("Cached names come back as they were found", "[cached_names]") {
  const std::string bytes = WriteCachedNames(Sample());
  absl::StatusOr<CachedNames> again = ParseCachedNames(bytes.data(), bytes.size());
  REQUIRE(again.ok());
  CHECK(again->build_id == "9f3c");
  CHECK(again->sources == "library 4096 bytes");
  CHECK(again->soname == "libacme.so.1");
  REQUIRE(again->names.size() == 51);
  CHECK(again->names[3].first == 3 * 0x123);
  REQUIRE(again->names[3].second.size() == 2);
  CHECK(again->names[3].second[0].function == "acme::Index::add");
  CHECK(again->names[3].second[0].line == 3);
  CHECK(again->names[3].second[0].resolved);
  CHECK(again->names[50].first == UINT64_MAX);
  CHECK(again->names[50].second.empty());
}

TEST_CASE("A file of names cut at any byte or with any flipped bit is refused, never misread", "[cached_names]") {
  const std::string bytes = WriteCachedNames(Sample());
  for (size_t size = 0; size < bytes.size(); size++) REQUIRE(ProblemOf(bytes.substr(0, size)) != "no error");
  for (size_t bit = 0; bit < bytes.size() * 8; bit++) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    absl::StatusOr<CachedNames> cached = ParseCachedNames(damaged.data(), damaged.size());
    // Some bits of zstd's frame header change nothing in the text; the checksum vouches for the rest.
    if (cached.ok()) REQUIRE(WriteCachedNames(*cached) == bytes);
  }
}

TEST_CASE("Another version is refused", "[cached_names]") {
  std::string bytes = WriteCachedNames(Sample());
  const uint32_t next = kCachedNamesVersion + 1;
  memcpy(bytes.data() + offsetof(PackedHeader, version), &next, sizeof(next));
  CHECK(ProblemOf(bytes) == "version 2 is not supported");
}

TEST_CASE("Addresses that do not ascend, counts that lie and floods are refused", "[cached_names]") {
  auto text = [](std::initializer_list<uint64_t> numbers) {
    std::string body;
    NumberedStrings().Write(&body);
    for (uint64_t number : numbers) PutVarint(number, &body);
    return body;
  };
  // Build id, sources and soname are string 0; then names: difference, number of frames.
  CHECK(ProblemOf(FileOf(text({0, 0, 0, 2, 5, 0, 1, 0}))) == "no error");
  CHECK(ProblemOf(FileOf(text({0, 0, 0, 2, 5, 0, 0, 0}))) == "its names are damaged");           // the same twice
  CHECK(ProblemOf(FileOf(text({0, 0, 0, 2, 5, 0, UINT64_MAX, 0}))) == "its names are damaged");  // beyond the end
  CHECK(ProblemOf(FileOf(text({0, 0, 0, 1 << 30, 5, 0}))) == "its text is damaged");
  CHECK(ProblemOf(FileOf(text({0, 0, 0, 1, 5, 1 << 30}))) == "its names are damaged");
  CHECK(ProblemOf(FileOf(text({9, 0, 0, 0}))) == "its text is damaged");  // a string that is not there
  CHECK(ProblemOf(FileOf(text({0, 0, 0, 0}) + "more")) == "its text is damaged");

  CachedNames many;
  for (uint64_t i = 0; i <= kMaxCachedNames; i++) many.names.push_back({i, {}});
  CHECK(ProblemOf(WriteCachedNames(many)) == "its text is damaged");
}

}  // namespace
}  // namespace cadastre
