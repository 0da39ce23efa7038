// Records and stacks column by column: every number comes back, what cannot be is refused, and what an older program
// wrote is still read.
#include <string.h>

#include "symbolizer/packed_profile.h"
#include "symbolizer/packed_text.h"
#include "symbolizer/record_columns.h"
#include "symbolizer/stack_columns.h"
#include "tests/support/catch.h"

namespace cadastre {
namespace {

TEST_CASE("Columns that cannot be are refused", "[packed_columns]") {
  std::vector<format::LiveRecord> records(3);
  for (uint32_t i = 0; i < 3; i++) records[i] = {7 << 2 | format::kReady, i, 4096 * i + 16, 24, 24, i, 0, 0};
  ColumnText columns;
  REQUIRE(EncodeRecords(format::kRegionLive, reinterpret_cast<const char*>(records.data()), 3, &columns));
  const std::string& text = columns.text;
  std::vector<format::LiveRecord> again(3);
  auto decode = [&](const std::string& bytes, uint64_t count) {
    again.assign(3, {});
    return DecodeRecords(format::kPackedVersion, format::kRegionLive, bytes, reinterpret_cast<char*>(again.data()),
                         count);
  };
  REQUIRE(decode(text, 3));
  CHECK(again[2].address == 4096 * 2 + 16);
  CHECK(again[2].state == format::kReady);
  CHECK_FALSE(decode(text, 2));
  CHECK_FALSE(decode(text + '\0', 3));
  for (size_t cut = 0; cut < text.size(); cut++) CHECK_FALSE(decode(text.substr(0, cut), 3));
  records.assign(3, {});
  CHECK_FALSE(EncodeRecords(format::kRegionLive, reinterpret_cast<const char*>(records.data()), 3, &columns));
}

TEST_CASE("Columns give back any number that a field can hold", "[packed_columns]") {
  std::vector<format::LiveRecord> records;
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{15}, uint64_t{16}, uint64_t{17}, UINT64_MAX / 3,
                         UINT64_MAX - 16, UINT64_MAX})
    for (uint64_t other : {uint64_t{3}, UINT64_MAX, value}) {
      const auto site = static_cast<uint32_t>(value ^ other);
      records.push_back({format::kWriting, site, value, other, value - other, value * other, site, ~site});
    }
  ColumnText columns;
  REQUIRE(EncodeRecords(format::kRegionLive, reinterpret_cast<const char*>(records.data()), records.size(), &columns));
  std::vector<format::LiveRecord> again(records.size());
  REQUIRE(DecodeRecords(format::kPackedVersion, format::kRegionLive, columns.text,
                        reinterpret_cast<char*>(again.data()), again.size()));
  CHECK(memcmp(again.data(), records.data(), records.size() * sizeof(format::LiveRecord)) == 0);
}

TEST_CASE("Sites come back from columns, whatever their counters say", "[packed_columns]") {
  std::vector<format::SiteRecord> records;
  for (uint64_t samples : {uint64_t{0}, uint64_t{1}, uint64_t{3}, uint64_t{1} << 63, UINT64_MAX})
    for (uint64_t allocated : {uint64_t{0}, uint64_t{72}, uint64_t{100}, uint64_t{1} << 63, UINT64_MAX})
      for (int64_t live : {int64_t{0}, int64_t{24}, int64_t{25}, int64_t{-24}, INT64_MAX, INT64_MIN}) {
        format::SiteRecord site{};
        site.state = format::kReady;
        site.frame_count = static_cast<uint32_t>(records.size() * 7919);
        site.samples = samples;
        site.allocated_bytes = allocated;
        site.live_bytes = live;
        site.live_at_peak_bytes = ~live;
        site.own_peak_bytes = live / 2;
        site.peak_epoch = allocated ^ samples;
        records.push_back(site);
      }
  ColumnText columns;
  REQUIRE(EncodeRecords(format::kRegionSites, reinterpret_cast<const char*>(records.data()), records.size(), &columns));
  std::vector<format::SiteRecord> again(records.size());
  REQUIRE(DecodeRecords(format::kPackedVersion, format::kRegionSites, columns.text,
                        reinterpret_cast<char*>(again.data()), again.size()));
  CHECK(memcmp(again.data(), records.data(), records.size() * sizeof(format::SiteRecord)) == 0);
}

// Any word may stand in any stack, and each counter may be as large as it likes.
TEST_CASE("A block of the largest numbers is one that may be read", "[packed_columns]") {
  std::vector<uint64_t> words(kPackedStackBytes / sizeof(uint64_t));
  std::vector<StackPlace> stacks;
  for (uint64_t i = 0; i < words.size(); i++) {
    words[i] = (i + 1) * 0x9e3779b97f4a7c15;
    stacks.push_back({i, 1});
  }
  ColumnText columns;
  EncodeStacks(stacks, words.data(), 0, &columns);
  CHECK(columns.text.size() <= kMaxPackedTextBytes);
  for (uint32_t kind : {format::kRegionLive, format::kRegionSites, format::kRegionMappings}) {
    // Every byte is as large as it gets and differs from that of the record before.
    std::string records(kPackedRecordBytes / RecordBytesOf(kind) * RecordBytesOf(kind), '\xff');
    for (size_t i = 0; i < records.size(); i++)
      records[i] = static_cast<char>((i / RecordBytesOf(kind) * 127 + i * 31) | 3);
    columns.Clear();
    REQUIRE(EncodeRecords(kind, records.data(), records.size() / RecordBytesOf(kind), &columns));
    CHECK(columns.text.size() <= kMaxPackedTextBytes);
  }
}

TEST_CASE("Sites of version 3 are read as they were written", "[packed_columns]") {
  std::string text;
  auto put = [&](std::initializer_list<uint64_t> values) {
    for (uint64_t value : values) PutVarint(value, &text);
  };
  put({2, 1, 0});                                        // two records, one free before them
  put({format::kReady, format::kReady});                 // state
  put({3, 5});                                           // frame_count
  put({2 * 10, 2 * 0});                                  // frame_start, from where the stack before ends
  put({format::kSiteMalloc, format::kSiteMmap, 0, 64});  // kind, flags
  put({2, 1, 0, 0, 200, 77});                            // samples, count_fixed from them, allocated_bytes
  put({0, 0, 100, 77, 2 * 50, 1});                       // variance, live_bytes, live_at_peak_bytes from them
  put({7, 0, 2 * 100 - 1, 0});                           // peak_epoch, own_peak_bytes from allocated_bytes
  put({1, 2, 0, 0, 0, 0});                               // first_thread, frees, frees_by_reaper
  format::SiteRecord sites[3] = {};
  REQUIRE(DecodeRecords(3, format::kRegionSites, text, reinterpret_cast<char*>(sites), 3));
  CHECK(sites[0].state == format::kFree);
  CHECK(sites[1].frame_count == 3);
  CHECK(sites[1].frame_start == 10);
  CHECK(sites[2].frame_start == 13);
  CHECK(sites[2].flags == 64);
  CHECK(sites[1].count_fixed == 2 << 16);
  CHECK(sites[1].allocated_bytes == 200);
  CHECK(sites[1].live_bytes == 100);
  CHECK(sites[1].live_at_peak_bytes == 150);
  CHECK(sites[2].live_at_peak_bytes == 76);
  CHECK(sites[1].peak_epoch == 7);
  CHECK(sites[1].own_peak_bytes == 100);
  CHECK(sites[2].own_peak_bytes == 77);
  CHECK(sites[2].first_thread == 2);
  CHECK_FALSE(DecodeRecords(format::kPackedVersion, format::kRegionSites, text, reinterpret_cast<char*>(sites), 3));
}

TEST_CASE("Stacks come back from columns, and columns that cannot be are refused", "[packed_columns]") {
  const uint64_t words[] = {1, 2, 9, 0, 0, 3, 2, 9, 9, 9};
  const StackPlace places[] = {{100, 3}, {105, 3}, {108, 2}};
  ColumnText columns;
  EncodeStacks(places, words, 100, &columns);
  const std::string& text = columns.text;
  uint64_t again[10] = {};
  REQUIRE(DecodeStacks(text, again, 10));
  CHECK(memcmp(words, again, sizeof(words)) == 0);
  CHECK_FALSE(DecodeStacks(text, again, 9));
  CHECK_FALSE(DecodeStacks(text + '\0', again, 10));
  for (size_t cut = 0; cut < text.size(); cut++) CHECK_FALSE(DecodeStacks(text.substr(0, cut), again, 10));
}

}  // namespace
}  // namespace cadastre
