// The report of HotSpot's memory tracking, as a snapshot from anywhere may hold it.
#include "report/nmt.h"

#include <stdlib.h>

#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() {
  return {
      "42:\n\nNative Memory Tracking:\n\nTotal: reserved=1623643KB, committed=229307KB\n       malloc: 36755KB "
      "#12295\n\n"
      "-                 Java Heap (reserved=131072KB, committed=131072KB)\n                            (mmap: "
      "reserved=131072KB, committed=131072KB)\n-                     Other (reserved=29307KB, committed=29307KB)\n     "
      "  "
      "                     (malloc=29307KB tag=Other #402) (at peak)\n                            (arena=20KB #76)\n"
      "Virtual memory map:\n\n[0x00007f11a7000000 - 0x00007f11ab000000] reserved 65536KB for Metaspace from\n"
      "Details:\n\n[0x00007f94d3ed14f2]\n                             (malloc=19932KB type=Other #274)\n"};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  auto nmt = cadastre::ParseNmt({reinterpret_cast<const char*>(bytes), size});
  if (!nmt.ok()) return 0;
  for (const cadastre::NmtRange& range : nmt->ranges) {
    if (range.start >= range.end) abort();
  }
  return 0;
}
