// Columns beside RESIDENT: no sum forces them to be right, so each way to count twice or too much has a case.
#include "tests/support/catch.h"
#include "tests/unit/report/ledger_fixture.h"

namespace cadastre {
namespace {

TEST_CASE("Committed is what was promised, once", "[ledger_columns]") {
  ProcessMemory memory;
  MemoryArea reserved = Area(0x100000, 0x200000, "", 0);
  reserved.readable = reserved.writable = false;
  MemoryArea unreserved = Area(0x200000, 0x300000, "", 3 * kPage);
  unreserved.noreserve = true;
  memory.areas = {reserved, unreserved, Area(0x300000, 0x310000, "", 0)};
  // Three views of one file, as ZGC's heap has up to JDK 17; the third reaches further.
  for (uint64_t view : {1, 2, 3}) {
    MemoryArea heap =
        Area(view * 0x1000000, view * 0x1000000 + (view == 3 ? 6 : 4) * kPage, "/memfd:java_heap (deleted)", kPage);
    heap.shared = true;
    heap.inode = 7;
    heap.pss_bytes = kPage / 4;
    memory.areas.push_back(heap);
  }
  Ledger ledger = BuildLedger(memory, {});
  CHECK(ledger.Sum(LedgerKind::kAnonymous).committed_bytes == 3 * kPage + 0x10000);
  CHECK(ledger.Sum(LedgerKind::kAnonymous).virtual_bytes == 0x210000);
  CHECK(ledger.Sum(LedgerKind::kJavaHeap).committed_bytes == 6 * kPage);
  CHECK(ledger.Sum(LedgerKind::kJavaHeap).resident_bytes == 3 * kPage);  // as Rss counts
  REQUIRE(ledger.checks.size() == 1);
  CHECK(ledger.checks[0].text ==
        "the Java heap's 12.0 KiB are 3.00 KiB of memory (Pss): the collector maps it several times, and Rss counts "
        "each");
}

TEST_CASE("A private mapping of /dev/zero is anonymous memory, a shared one is shared", "[ledger_columns]") {
  testing::ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)}, format::kSiteMmap);
  builder.AddMapping(site, 0x100000, 0x110000, 3 | format::kMappingFile);
  ProcessMemory memory;
  MemoryArea shared = Area(0x200000, 0x210000, "/dev/zero (deleted)", kPage);
  shared.shared = true;
  memory.areas = {Area(0x100000, 0x110000, "/dev/zero", 2 * kPage), shared};
  for (const Ledger& ledger : {BuildLedger(memory, {}), Recorded(builder).Of(memory)}) {
    CHECK(ResidentOf(ledger, LedgerKind::kAnonymous) == 2 * kPage);
    CHECK(ResidentOf(ledger, LedgerKind::kSharedMemory) == kPage);
    for (const LedgerRow& row : ledger.rows) {
      if (ledger.recorded && row.kind == LedgerKind::kAnonymous) CHECK(row.owner == "libbilling.so");
    }
  }
}

TEST_CASE("A stack inside a block is the thread's alone", "[ledger_columns]") {
  testing::ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)});
  builder.AddSample(site, 0x100000, 0x40000, 0x40000);
  const uint32_t thread = builder.AddThread("worker", 77);
  builder.thread(thread).stack_low = 0x110000;
  builder.thread(thread).stack_high = 0x140000;
  ProcessMemory memory;
  memory.threads = {{77, "worker"}};
  memory.areas = {Area(0x100000, 0x150000, "[heap]", 0x50000)};
  Ledger ledger = Recorded(builder).Of(memory);
  int64_t all = 0;
  for (const LedgerRow& row : ledger.rows) all += row.virtual_bytes;
  CHECK(all == 0x50000);
  CHECK(ledger.Sum(LedgerKind::kThreadStacks).virtual_bytes == 0x30000);
  CHECK(ledger.Sum(LedgerKind::kLiveMalloc).virtual_bytes == 0x10000);
  CHECK(ledger.Sum(LedgerKind::kRetention).virtual_bytes == 0x10000);
  CHECK(ledger.Sum(LedgerKind::kRetention).committed_bytes == 0x10000);
}

TEST_CASE("Retention that is estimated below zero is shown as nothing, with its error", "[ledger_columns]") {
  testing::ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)});
  builder.AddSample(site, 0x100000, kMiB64, 3 * kMiB64);
  ProcessMemory memory;
  memory.areas = {Area(0x100000, 0x100000 + 2 * kMiB64, "[heap]", 2 * kMiB64)};
  Ledger ledger = Recorded(builder).Of(memory);
  REQUIRE(ResidentOf(ledger, LedgerKind::kRetention) == -static_cast<int64_t>(kMiB64));
  const std::string text = FormatLedgerText(ledger, {}, 10);
  INFO(text);
  CHECK(text.find("note: allocator retention is -1.00 MiB by the samples") != std::string::npos);
  CHECK(text.find("-1.0") == text.rfind("-1.0"));  // there alone
  CHECK(text.find("nothing within its error") != std::string::npos);
  CHECK(ledger.summary.find("retention 0.00 ±") != std::string::npos);
  CHECK(FormatLedgerJson(ledger).find("\"resident_bytes\": -1048576") != std::string::npos);
  CHECK(FormatLedgerMarkdown(ledger).find("| -") == std::string::npos);
}

}  // namespace
}  // namespace cadastre
