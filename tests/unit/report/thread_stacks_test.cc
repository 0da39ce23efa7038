// Who has which stack is said of each thread that lives, and of no other.
#include <string.h>

#include "tests/support/catch.h"
#include "tests/unit/report/ledger_fixture.h"

namespace cadastre {
namespace {

TEST_CASE("Each living thread has its stack, and who created it", "[thread_stacks]") {
  testing::ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t creation =
      builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x2000)}, format::kSiteStack);
  auto add = [&](const char* name, uint32_t tid, uint64_t low, uint64_t high) {
    const uint32_t thread = builder.AddThread(name, tid);
    builder.thread(thread).creation_site = creation;
    if (strlen(name) > 15) builder.thread(thread).full_name = builder.AddString(name);
    builder.thread(thread).stack_low = low;
    builder.thread(thread).stack_high = high;
  };
  add("a name longer than the kernel's", 77, 0x100000, 0x110000);
  add("gone", 78, 0x110000, 0x120000);
  add("its first name", 80, 0x300000, 0x310000);
  ProcessMemory memory;
  memory.threads = {{76, "server"}, {77, "a name longer t"}, {79, "by clone"}, {80, "renamed"}};
  memory.known = {{0x200000, 0x210000, KnownUse::kThreadStack, 76, ""}};
  memory.areas = {Resident(&memory, 0x100000, 0x120000, {{0x10c000, 0x112000}}),
                  Area(0x200000, 0x210000, "[stack]", 3 * kPage), Area(0x300000, 0x310000, "", kPage)};
  Recorded recorded(builder);
  Ledger ledger = recorded.Of(memory);
  REQUIRE(ledger.threads.size() == 4);
  const ThreadStack& worker = ledger.threads[0];
  CHECK(worker.tid == 77);
  CHECK(worker.name == "a name longer than the kernel's");
  CHECK(worker.end - worker.start == 0x10000);
  CHECK(worker.resident_bytes == 4 * kPage);
  CHECK(worker.owner == "libbilling.so");
  REQUIRE(worker.created_by.size() == 1);
  CHECK(worker.created_by[0]->library == "/opt/app/libbilling.so");
  CHECK(ledger.threads[1].name == "server");
  CHECK(ledger.threads[1].resident_bytes == 3 * kPage);
  CHECK(ledger.threads[2].name == "renamed");
  CHECK(ledger.threads[3].end == 0);
  CHECK(ResidentOf(ledger, LedgerKind::kThreadStacks) == 8 * kPage);
  CHECK(ResidentOf(ledger, LedgerKind::kEndedStacks) == 2 * kPage);
  const std::string text = FormatThreadStacksText(ledger, {});
  INFO(text);
  CHECK(text.find("gone") == std::string::npos);
  CHECK(text.find("libbilling.so+0x") != std::string::npos);
  CHECK(FormatThreadStacksCsv(ledger).find("79,by clone,,,,,\n") != std::string::npos);
  for (const std::string& json : {FormatLedgerJson(ledger), LedgerSummaryJson(ledger)})
    CHECK(json.find("\"created_by\": [{\"function\": \"libbilling.so+0x") != std::string::npos);
}

TEST_CASE("Where nothing was recorded a stack is the area around the stack pointer, if no other thread is in it",
          "[thread_stacks]") {
  ProcessMemory memory;
  memory.threads = {{1, "server"}, {2, "worker"}, {3, "pool-1"}, {4, "pool-2"}};
  memory.known = {{0x100000, 0x110000, KnownUse::kThreadStack, 2, ""},
                  {0x200000, 0x240000, KnownUse::kThreadStack, 3, ""},
                  {0x200000, 0x240000, KnownUse::kThreadStack, 4, ""}};
  memory.areas = {Area(0x100000, 0x110000, "", kPage), Area(0x200000, 0x240000, "", 2 * kPage)};
  Ledger ledger = BuildLedger(memory, {});
  REQUIRE(ledger.threads.size() == 4);
  CHECK(ledger.threads[0].name == "worker");
  CHECK(ledger.threads[0].resident_bytes == kPage);
  for (size_t i = 1; i < 4; i++) CHECK(ledger.threads[i].end == 0);
  CHECK(ResidentOf(ledger, LedgerKind::kThreadStacks) == 3 * kPage);
  CHECK(FormatThreadStacksText(ledger, {}).find("who created the threads is not known") != std::string::npos);
}

}  // namespace
}  // namespace cadastre
