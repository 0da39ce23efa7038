// Why: a wrong interval map charges memory to whoever mapped it before, silently. Checked against an array with one
// entry a page, over random calls; and what the profile shows must be what the map says.
#include "interposer/mapping_map.h"

#include <map>
#include <optional>
#include <random>
#include <vector>

#include "interposer/profile_file.h"
#include "tests/support/catch.h"
#include "tests/unit/interposer/test_profile.h"

namespace cadastre {
namespace {

constexpr uint64_t kPage = 4096, kBase = 0x10000000, kPages = 300;

void Open() {
  static const bool opened = [] {
    OpenTestProfile();
    REQUIRE(MappingMapInit(g_profile.mapping_capacity));
    return true;
  }();
  REQUIRE(opened);
}

struct Page {
  uint32_t site, flags;
  bool operator==(const Page& other) const = default;
};
using Model = std::vector<std::optional<Page>>;

// What the records of the profile say, page by page; they must not overlap.
Model Published() {
  Model pages(kPages);
  for (uint32_t i = 0; i < g_profile.mapping_capacity; i++) {
    const format::MappingRecord& record = g_profile.mappings[i];
    if ((record.state & format::kStateMask) != format::kReady) continue;
    for (uint64_t at = record.start; at < record.end; at += kPage) {
      const uint64_t page = (at - kBase) / kPage;
      REQUIRE(page < kPages);
      REQUIRE_FALSE(pages[page].has_value());
      pages[page] = Page{record.site, record.flags};
    }
  }
  return pages;
}

TEST_CASE("The map agrees with an array of pages over many random calls") {
  Open();
  Model model(kPages);
  std::mt19937_64 random(7);
  for (int step = 0; step < 20000; step++) {
    const uint64_t first = random() % kPages;
    const uint64_t count = std::min<uint64_t>(kPages - first, 1 + random() % (random() % 6 == 0 ? kPages : 12));
    const uint64_t start = kBase + first * kPage, end = start + count * kPage;
    const uint32_t site = 1 + random() % 3, protection = random() % 4;
    switch (random() % 5) {
      case 0:
        MappingInsert({start, end, 1, site, 0, format::kMappingShared | protection});
        for (uint64_t p = first; p < first + count; p++) model[p] = Page{site, format::kMappingShared | protection};
        break;
      case 1: {
        // Taken out by a mark; what is put in meanwhile stays.
        MappingMark(start, end, 5);
        if (random() % 2 == 0) {
          MappingInsert({start, start + kPage, 1, 9, 0, 0});
          model[first].reset();
        }
        Model gone(kPages);
        MappingRange piece;
        while (MappingTakeMarked(start, end, 5, &piece)) {
          REQUIRE(piece.start >= start);
          REQUIRE(piece.end <= end);
          for (uint64_t at = piece.start; at < piece.end; at += kPage)
            gone[(at - kBase) / kPage] = Page{piece.site, piece.flags};
        }
        MappingRemove(start, start + kPage);
        for (uint64_t p = first; p < first + count; p++) {
          REQUIRE(gone[p] == model[p]);
          model[p].reset();
        }
        break;
      }
      case 2:
        MappingRemove(start, end);
        for (uint64_t p = first; p < first + count; p++) model[p].reset();
        break;
      case 3:
        MappingMark(start, end, 6);
        MappingInsert({start, start + kPage, 1, site, 0, format::kMappingShared | protection});
        MappingRemoveMarked(start, end, 6);
        for (uint64_t p = first; p < first + count; p++) model[p].reset();
        model[first] = Page{site, format::kMappingShared | protection};
        break;
      default:
        MappingProtect(start, end, protection);
        for (uint64_t p = first; p < first + count; p++) {
          if (model[p]) model[p]->flags = format::kMappingShared | protection;
        }
    }
    if (step % 99 == 0) MappingMapRepair();  // of what is sound nothing changes
    const uint64_t probe = random() % kPages;
    MappingRange found;
    const bool is_there = MappingFind(kBase + probe * kPage + 1, &found);
    REQUIRE(is_there == model[probe].has_value());
    if (is_there) REQUIRE(Page{found.site, found.flags} == *model[probe]);
    uint64_t run = first;
    while (run < first + count && model[run] && (model[run]->flags & 1) == 0) run++;
    REQUIRE(MappingEndOfRun(start, end, 1) == kBase + run * kPage);
    if (step % 50 == 0) REQUIRE(Published() == model);
  }
  MappingRemove(kBase, kBase + kPages * kPage);
}

TEST_CASE("Neighbours that say the same are one range, as old as the lower one") {
  Open();
  MappingInsert({kBase, kBase + kPage, 5, 1, 0, 3});
  MappingInsert({kBase + kPage, kBase + 2 * kPage, 9, 1, 0, 3});
  MappingInsert({kBase + 2 * kPage, kBase + 3 * kPage, 9, 2, 0, 3});
  MappingRange found;
  REQUIRE(MappingFind(kBase + kPage, &found));
  CHECK(found.start == kBase);
  CHECK(found.end == kBase + 2 * kPage);
  CHECK(found.time_ns == 5);
  MappingRemove(kBase, kBase + 3 * kPage);
  CHECK_FALSE(MappingFind(kBase, &found));
}

// Last: it fills the map.
TEST_CASE("Where there is no room a range is forgotten and counted, and the rest stays right") {
  Open();
  const uint64_t before = g_profile.header->counters.mappings_full;
  for (uint64_t i = 0; i < g_profile.mapping_capacity; i++)
    MappingInsert({kBase + 2 * i * kPage, kBase + (2 * i + 1) * kPage, 1, 1, 0, 3});
  CHECK(g_profile.header->counters.mappings_full > before);
  MappingRange found;
  CHECK(MappingFind(kBase, &found));
  CHECK_FALSE(MappingFind(kBase + kPage, &found));
  MappingRemove(kBase, kBase + 2 * g_profile.mapping_capacity * kPage);
  CHECK_FALSE(MappingFind(kBase, &found));
}

}  // namespace
}  // namespace cadastre
