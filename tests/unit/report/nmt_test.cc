// The shapes of HotSpot's memory report differ between versions; its figures must not.
#include "report/nmt.h"

#include "report/hotspot_memory.h"
#include "tests/support/catch.h"

namespace cadastre {
namespace {

// JDK 17, then what JDK 25 says differently.
constexpr char k17[] =
    "4242:\n\nNative Memory Tracking:\n\n"
    "Total: reserved=1623643KB, committed=229307KB\n"
    "       malloc: 36755KB #12295\n"
    "       mmap:   reserved=1586888KB, committed=192552KB\n\n"
    "-                 Java Heap (reserved=131072KB, committed=131072KB)\n"
    "                            (mmap: reserved=131072KB, committed=131072KB) \n \n"
    "-                    Thread (reserved=39990KB, committed=2950KB)\n"
    "                            (thread #39)\n"
    "                            (stack: reserved=39936KB, committed=2896KB)\n"
    "                            (malloc=34KB #231) \n"
    "                            (arena=20KB #76)\n \n"
    "-                     Other (reserved=29307KB, committed=29307KB)\n"
    "                            (malloc=29307KB #402) (at peak)\n \n"
    "Virtual memory map:\n \n"
    "[0x00007f11a7000000 - 0x00007f11ab000000] reserved 65536KB for Metaspace from\n"
    "    [0x00007f9641d52a4e]os::reserve_memory(unsigned long)+0x4e\n"
    "\t[0x00007f11a7000000 - 0x00007f11a7020000] committed 128KB from\n"
    "[0x00000000f0000000 - 0x0000000100000000] reserved and committed 262144KB for Java Heap from\n"
    "Details:\n\n"
    "[0x00007f94d3ed14f2]\n"
    "                             (malloc=19932KB type=Other #274)\n";

TEST_CASE("The report of JDK 17 is read with its ranges", "[nmt]") {
  auto nmt = ParseNmt(k17);
  REQUIRE(nmt.ok());
  CHECK(nmt->reserved_bytes == 1623643ull * 1024);
  CHECK(nmt->committed_bytes == 229307ull * 1024);
  REQUIRE(nmt->categories.size() == 3);
  CHECK(nmt->categories[0].name == "Java Heap");
  CHECK(nmt->categories[0].committed_bytes == 131072ull * 1024);
  CHECK(nmt->categories[1].malloc_bytes == 34 * 1024);
  CHECK(nmt->categories[1].malloc_blocks == 231);
  CHECK(nmt->categories[1].arena_bytes == 20 * 1024);
  CHECK(nmt->MallocBytes() == (34 + 20 + 29307) * 1024);  // call sites are not counted again
  CHECK(nmt->MallocBlocks() == 633);
  REQUIRE(nmt->ranges.size() == 2);
  CHECK(nmt->ranges[0].start == 0x7f11a7000000);
  CHECK(nmt->ranges[0].end == 0x7f11ab000000);
  CHECK(nmt->ranges[0].category == "Metaspace");
  CHECK(nmt->ranges[1].category == "Java Heap");
}

TEST_CASE("The report of JDK 25 is read, in bytes too", "[nmt]") {
  auto nmt = ParseNmt(
      "Total: reserved=1000, committed=500\n"
      "       malloc: 44 #13, peak=44 #14\n"
      "-                     Other (reserved=300, committed=300)\n"
      "                            (malloc=300 tag=Other #4) (at peak)\n"
      "-        Shared class space (reserved=16777312, committed=14241888, readonly=0)\n"
      "                            (malloc=96 tag=Shared class space #2) (at peak)\n");
  REQUIRE(nmt.ok());
  CHECK(nmt->reserved_bytes == 1000);
  CHECK(nmt->MallocBytes() == 396);
  CHECK(nmt->MallocBlocks() == 6);
  CHECK(nmt->categories[1].reserved_bytes == 16777312);
}

TEST_CASE("A detail report takes the figures of a newer summary, and keeps its ranges", "[nmt]") {
  auto nmt = ParseNmt(NmtWithSummary(k17,
                                     "4242:\n\nNative Memory Tracking:\n\n"
                                     "Total: reserved=3000, committed=2000\n\n"
                                     "-                     Other (reserved=900, committed=900)\n"
                                     "                            (malloc=900 #3)\n \n"));
  REQUIRE(nmt.ok());
  CHECK(nmt->committed_bytes == 2000);
  REQUIRE(nmt->categories.size() == 1);
  CHECK(nmt->MallocBytes() == 900);
  REQUIRE(nmt->ranges.size() == 2);
  CHECK(nmt->ranges[1].category == "Java Heap");
  CHECK(NmtWithSummary("", k17) == std::string(k17).substr(0, EndOfNmtCategories(k17)));
}

TEST_CASE("A JVM without tracking has no report, and its words are the error", "[nmt]") {
  auto nmt = ParseNmt("Native memory tracking is not enabled\n");
  CHECK_FALSE(nmt.ok());
  CHECK(nmt.status().message() == "Native memory tracking is not enabled");
  CHECK_FALSE(ParseNmt("").ok());
}

TEST_CASE("What ZGC maps is the Java heap or its own tables, by who asked for it", "[nmt]") {
  auto part = [](const std::vector<std::string>& functions) {
    std::vector<Frame> frames(functions.size());
    std::vector<const Frame*> stack;
    for (size_t i = 0; i < functions.size(); i++) {
      frames[i].function = functions[i];
      frames[i].library = "/opt/jdk/lib/server/libjvm.so";
      stack.push_back(&frames[i]);
    }
    return PartOfStack(stack);
  };
  CHECK(part({"os::commit_memory_or_exit", "ZPhysicalMemoryManager::ZPhysicalMemoryManager",
              "ZPageAllocator::ZPageAllocator"}) == HotSpotPart::kGc);
  CHECK(part({"ZPhysicalMemoryBacking::map", "ZPhysicalMemoryManager::map", "ZPageAllocator::map_page"}) ==
        HotSpotPart::kJavaHeap);
  CHECK(part({"os::reserve_memory", "ZMarkStackSpace::ZMarkStackSpace"}) == HotSpotPart::kGc);
}

}  // namespace
}  // namespace cadastre
