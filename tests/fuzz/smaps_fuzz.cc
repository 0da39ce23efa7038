// smaps of a process that somebody else runs: names of mappings are what that program wants them to be.
#include "report/smaps.h"

#include <stdlib.h>

#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() {
  return {
      "55f49d29b000-55f49d29c000 r--p 00001000 fe:00 18500    /opt/a b/python3 (deleted)\nSize: 4 kB\nRss: 4 kB\nPss: "
      "2 "
      "kB\nShared_Clean: 2 kB\nPrivate_Dirty: 2 kB\nAnonHugePages: 0 kB\nVmFlags: rd mr \n7f1180000000-7f1180021000 "
      "rw-p 00000000 00:00 0 \nRss: 8 kB\nSwap: 12 kB\nffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\n"};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  auto areas = cadastre::ParseSmaps({reinterpret_cast<const char*>(bytes), size}, "smaps");
  if (!areas.ok()) return 0;
  uint64_t last = 0;
  for (const cadastre::MemoryArea& area : *areas) {
    if (area.start < last || area.end <= area.start || area.rss_bytes > area.end - area.start) abort();
    last = area.end;
  }
  return 0;
}
