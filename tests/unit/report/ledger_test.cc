// The ledger's promise is one sum: whatever comes in, rows add up to Rss. And each trap of the join has a case.
#include <random>

#include "symbolizer/process_block.h"
#include "tests/support/catch.h"
#include "tests/unit/report/ledger_fixture.h"

namespace cadastre {
namespace {

TEST_CASE("A process that was not recorded has the rows that names give", "[ledger]") {
  ProcessMemory memory;
  MemoryArea text = Text(0x1000, 0x3000, "/opt/app/server", kPage);
  memory.areas = {text,
                  Area(0x3000, 0x4000, "/opt/app/server", kPage),
                  Area(0x4000, 0x6000, "", 2 * kPage),  // .bss follows its file
                  Area(0x10000, 0x20000, "[heap]", 3 * kPage),
                  Area(0x30000, 0x40000, "", kPage),
                  Area(0x50000, 0x60000, "/dev/shm/pool", 5 * kPage),
                  Area(0x70000, 0x80000, "/srv/data", 6 * kPage),
                  Area(0x90000, 0xa0000, "[stack]", 7 * kPage),
                  Area(0xb0000, 0xb1000, "[vdso]", kPage)};
  Ledger ledger = BuildLedger(memory, {});
  CHECK(ledger.rss_bytes == 27 * kPage);
  CHECK(SumOf(ledger) == static_cast<int64_t>(ledger.rss_bytes));
  CHECK(ResidentOf(ledger, LedgerKind::kLibraryText) == kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kLibraryData) == 3 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kAllocator) == 3 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kAnonymous) == kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kSharedMemory) == 5 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kMappedFiles) == 6 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kThreadStacks) == 7 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kKernel) == kPage);
  CHECK(ledger.rows.back().kind == LedgerKind::kUnexplained);
}

TEST_CASE("Live blocks count their resident pages, and retention is the rest", "[ledger]") {
  testing::ProfileBuilder builder;
  builder.header().interval_bytes = 1;
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)});
  builder.AddSample(site, 0x100000, kMiB64, kMiB64);        // half of it touched
  builder.AddSample(site, 0x300000, 2 * kPage, 2 * kPage);  // whole
  ProcessMemory memory;
  MemoryArea heap = Area(0x100000, 0x400000, "[heap]", 0);
  heap.pages_known = true;
  heap.rss_bytes = heap.private_bytes = kMiB64 / 2 + 0x10000;
  memory.resident = {{0x100000, 0x180000}, {0x300000, 0x310000}};
  memory.areas = {heap};
  Ledger ledger = Recorded(builder).Of(memory);
  CHECK(SumOf(ledger) == static_cast<int64_t>(ledger.rss_bytes));
  const LedgerRow live = ledger.Sum(LedgerKind::kLiveMalloc);
  CHECK(live.virtual_bytes == static_cast<int64_t>(kMiB64 + 2 * kPage));
  CHECK(live.resident_bytes == static_cast<int64_t>(kMiB64 / 2 + 2 * kPage));
  CHECK(live.StandardError() == 0);
  CHECK(ResidentOf(ledger, LedgerKind::kRetention) == 0x10000 - 2 * kPage);
}

TEST_CASE("Mappings, stacks and Cadastre's own memory divide one area by its pages", "[ledger]") {
  testing::ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)}, format::kSiteMmap);
  uint32_t creation =
      builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x2000)}, format::kSiteStack);
  builder.AddMapping(site, 0x100000, 0x110000, 3);
  uint32_t lives = builder.AddThread("worker", 77), ended = builder.AddThread("gone", 78);
  builder.thread(lives).creation_site = creation;
  builder.thread(lives).stack_low = 0x110000;
  builder.thread(lives).stack_high = 0x120000;
  builder.thread(ended).stack_low = 0x120000;
  builder.thread(ended).stack_high = 0x130000;
  builder.header().own_memory[0] = {0x130000, 0x10000};
  ProcessMemory memory;
  memory.threads = {{77, "worker"}};
  memory.areas = {Resident(
      &memory, 0x100000, 0x150000,
      {{0x100000, 0x101000}, {0x110000, 0x112000}, {0x120000, 0x123000}, {0x130000, 0x134000}, {0x140000, 0x145000}})};
  Ledger ledger = Recorded(builder).Of(memory);
  CHECK(SumOf(ledger) == static_cast<int64_t>(ledger.rss_bytes));
  CHECK(ResidentOf(ledger, LedgerKind::kAnonymous) == 1 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kThreadStacks) == 2 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kEndedStacks) == 3 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kCadastre) == 4 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kUnexplained) == 5 * kPage);
  for (const LedgerRow& row : ledger.rows) {
    if (row.kind == LedgerKind::kThreadStacks || row.kind == LedgerKind::kAnonymous)
      CHECK(row.owner == "libbilling.so");
  }
}

TEST_CASE("An allocator's mappings are retention, never its owner's and never twice", "[ledger]") {
  testing::ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/usr/lib/libjemalloc.so.2");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)}, format::kSiteMmap);
  builder.AddMapping(site, 0x100000, 0x200000, 3 | format::kMappingAllocator);
  ProcessMemory memory;
  memory.areas = {Resident(&memory, 0x100000, 0x200000, {{0x100000, 0x200000}})};
  Ledger ledger = Recorded(builder).Of(memory);
  CHECK(ResidentOf(ledger, LedgerKind::kRetention) == static_cast<int64_t>(kMiB64));
  CHECK(ResidentOf(ledger, LedgerKind::kAnonymous) == 0);
}

TEST_CASE("A library that a rule owns is its module's, another is known by its file", "[ledger]") {
  testing::ProfileBuilder builder;
  ProcessMemory memory;
  for (const char* path : {"/opt/app/libbilling.so.1", "/usr/lib/libc.so.6"}) {
    const uint64_t start = 0x100000 * (1 + memory.areas.size());
    MemoryArea text = Text(start, start + 4 * kPage, path, 3 * kPage);
    memory.areas.push_back(text);
    memory.areas.push_back(Area(start + 4 * kPage, start + 6 * kPage, path, 2 * kPage));
  }
  OwnerRules rules;
  rules.rules = *ParseOwnerRules("prefix,module,team\nlib:libbilling.so,billing,payments\n", "owners.csv");
  Ledger ledger = Recorded(builder, rules).Of(memory);
  CHECK(SumOf(ledger) == static_cast<int64_t>(ledger.rss_bytes));
  for (const LedgerRow& row : ledger.rows) {
    if (row.kind != LedgerKind::kLibraryText && row.kind != LedgerKind::kLibraryData) continue;
    INFO(row.owner);
    CHECK(row.resident_bytes == static_cast<int64_t>((row.kind == LedgerKind::kLibraryText ? 3 : 2) * kPage));
    CHECK(row.team == (row.owner == "billing" ? "payments" : ""));
    CHECK((row.owner == "billing" || row.owner == "libc.so.6"));
  }
  CHECK(ledger.rows.size() == 5);
}

// Where each library's image ends decides, not what the kernel has put behind it.
TEST_CASE("Anonymous memory above a library is the library's as far as its segments go", "[ledger]") {
  ProcessMemory memory;
  for (uint64_t start : {0x100000ull, 0x200000ull, 0x300000ull}) {
    MemoryArea text = Text(start, start + 2 * kPage, start == 0x300000 ? "/lib/c.so" : "/lib/a.so", kPage);
    memory.areas.push_back(text);
    memory.areas.push_back(Area(start + 2 * kPage, start + 6 * kPage, "", 4 * kPage));
  }
  memory.known = {{0x100000, 0x100000 + 3 * kPage - 8, KnownUse::kLibrary, 0, ""},  // a page of .bss, and a stranger
                  {0x200000, 0x200000 + 2 * kPage, KnownUse::kLibrary, 0, ""}};     // none
  Ledger ledger = BuildLedger(memory, {});
  // Of the third nothing is known: what follows a library is believed to be its own.
  CHECK(ResidentOf(ledger, LedgerKind::kLibraryData) == (1 + 0 + 4) * static_cast<int64_t>(kPage));
  CHECK(ResidentOf(ledger, LedgerKind::kAnonymous) == (3 + 4) * static_cast<int64_t>(kPage));
}

TEST_CASE("Rules own libraries, the JVM and threads of a process that was not recorded", "[ledger]") {
  ProcessMemory memory;
  for (const char* path : {"/opt/app/libbilling.so.1", "/opt/jdk/lib/server/libjvm.so"}) {
    const uint64_t start = 0x100000 * (1 + memory.areas.size());
    MemoryArea text = Text(start, start + 4 * kPage, path, 3 * kPage);
    memory.areas.push_back(text);
  }
  memory.areas.push_back(Area(0x500000, 0x510000, "", kPage));
  memory.areas.push_back(Area(0x600000, 0x610000, "", 2 * kPage));
  memory.known = {{0x500000, 0x510000, KnownUse::kMetaspace, 0, ""},
                  {0x600000, 0x610000, KnownUse::kThreadStack, 77, ""}};
  memory.threads = {{77, "pdf-worker"}};
  auto owner_of = [](const Ledger& ledger, LedgerKind kind) {
    for (const LedgerRow& row : ledger.rows) {
      if (row.kind == kind) return absl::StrCat(row.owner, "/", row.team);
    }
    return std::string("no row");
  };
  OwnerRules rules;
  rules.rules =
      *ParseOwnerRules("prefix,module,team\nlib:libbilling.so,billing,payments\nthread:pdf-,pdf,print\n", "owners.csv");
  FrameOwner owners(rules);
  Ledger ledger = BuildLedger(memory, {.rules = &owners});
  CHECK(owner_of(ledger, LedgerKind::kThreadStacks) == "pdf/print");
  CHECK(owner_of(ledger, LedgerKind::kMetaspace) == "/");
  bool billing = false;
  for (const LedgerRow& row : ledger.rows) billing |= row.kind == LedgerKind::kLibraryText && row.owner == "billing";
  CHECK(billing);
  rules.rules = *ParseOwnerRules("prefix,module,team\nlib:libjvm.so,runtime,platform\n", "owners.csv");
  FrameOwner jvm_owners(rules);
  CHECK(owner_of(BuildLedger(memory, {.rules = &jvm_owners}), LedgerKind::kMetaspace) == "runtime/platform");
}

// A block may have grown together with HotSpot's area, and what is in that may read like a block's header.
TEST_CASE("Where classes were met is metaspace, but for blocks that were recorded", "[ledger]") {
  testing::ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)});
  builder.AddSample(site, 0x100000, 0x10000, 0x10000);
  ProcessMemory memory;
  memory.areas = {Area(0x100000, 0x120000, "", 0x20000)};
  memory.known = {{0x100000, 0x120000, KnownUse::kMetaspace, 0, ""}, {0x110000, 0x120000, KnownUse::kAllocator, 0, ""}};
  CHECK(ResidentOf(Recorded(builder).Of(memory), LedgerKind::kLiveMalloc) == 0x10000);
  CHECK(ResidentOf(BuildLedger(memory, {}), LedgerKind::kMetaspace) == 0x20000);
}

TEST_CASE("The class space follows the archive, and ends before an arena", "[ledger]") {
  ProcessMemory memory;
  MemoryArea archive = Area(0x40000000, 0x40100000, "/opt/jdk/lib/server/classes.jsa", kPage);
  MemoryArea unused = Area(0x41010000, 0x81000000, "", 0);
  unused.readable = unused.writable = false;
  memory.areas = {archive, Area(0x40100000, 0x41010000, "", 2 * kPage), unused,
                  Area(0x81000000, 0x81021000, "", 4 * kPage)};
  Ledger ledger = BuildLedger(memory, {});
  CHECK(ResidentOf(ledger, LedgerKind::kCds) == kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kClassSpace) == 2 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kAnonymous) == 4 * kPage);
}

TEST_CASE("Whatever the address space is, rows add up", "[ledger]") {
  std::mt19937_64 random(20260101);
  const char* names[] = {"",           "[heap]",  "/lib/libc.so.6", "/srv/data",
                         "/dev/shm/x", "[stack]", "[anon:arena]",   "/a.jsa"};
  for (int round = 0; round < 200; round++) {
    ProcessMemory memory;
    testing::ProfileBuilder builder;
    uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
    uint32_t block = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)});
    uint32_t map =
        builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1100)}, format::kSiteMmap);
    uint64_t at = 0x100000;
    for (int i = 0; i < 20; i++) {
      const uint64_t pages = 1 + random() % 40, start = at + random() % 3 * kPage, end = start + pages * kPage;
      MemoryArea area = Area(start, end, names[random() % std::size(names)], (random() % (pages + 1)) * kPage);
      area.shared_bytes = random() % (area.rss_bytes + 1);
      area.pages_known = random() % 2 == 0;
      area.executable = random() % 4 == 0;
      area.noreserve = random() % 4 == 0;
      if (area.pages_known && area.rss_bytes > 0) memory.resident.push_back({start, start + area.rss_bytes});
      if (random() % 3 == 0) builder.AddSample(block, start + random() % 4096, 1 + random() % (pages * kPage), 1 << 20);
      if (random() % 3 == 0)
        memory.known.push_back(
            {start + random() % 2 * kPage, end, static_cast<KnownUse>(random() % kKnownUses), 7, "GC"});
      memory.areas.push_back(area);
      at = end;
    }
    const uint64_t middle = 0x100000 + random() % 100 * kPage;
    builder.AddMapping(map, middle, middle + 30 * kPage, random() % 2 == 0 ? 3 : 3 | format::kMappingAllocator);
    for (const Ledger& ledger : {BuildLedger(memory, {}), Recorded(builder).Of(memory)}) {
      REQUIRE(SumOf(ledger) == static_cast<int64_t>(ledger.rss_bytes));
      int64_t shared = 0, want = 0;
      for (const LedgerRow& row : ledger.rows) shared += row.shared_bytes;
      for (const MemoryArea& area : memory.areas) want += static_cast<int64_t>(area.shared_bytes);
      REQUIRE(shared == want);
    }
    if (round % 2 == 0)
      memory.allocator = {"glibc", random(), random(), random(), random(), random(), random(), round % 4 == 0};
    memory.nmt_apart_ns = round % 3 - 1;
    // What a snapshot keeps gives the same ledger.
    const std::string block_bytes = WriteProcessBlock(memory);
    auto again = ParseProcessBlock(block_bytes.data(), block_bytes.size());
    REQUIRE(again.ok());
    REQUIRE(again->nmt_apart_ns == memory.nmt_apart_ns);
    REQUIRE(FormatLedgerJson(BuildLedger(*again, {})) == FormatLedgerJson(BuildLedger(memory, {})));
  }
}

TEST_CASE("The summary is in the unit of the RSS", "[ledger]") {
  ProcessMemory memory;
  memory.taken_realtime_ns = 1767265140ull * 1000000000;  // 2026-01-01 10:59 UTC
  memory.areas = {Area(0x100000, 0x100000 + 300 * kMiB64, "[heap]", 300 * kMiB64),
                  Area(0x70000000, 0x70000000 + 8 * kMiB64, "[stack]", 8 * kMiB64)};
  CHECK(BuildLedger(memory, {}).summary == "RSS 308 MiB at 10:59 UTC: allocator 300 · stacks 8 · other 0");
}

}  // namespace
}  // namespace cadastre
