// The process region of a snapshot: its bytes, and its text with a right checksum.
#include <stdlib.h>
#include <string.h>

#include "symbolizer/packed_text.h"
#include "symbolizer/process_block.h"
#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() {
  ProcessMemory memory;
  memory.pid = 42;
  memory.exe = "/opt/app/server";
  for (uint64_t i = 1; i < 6; i++) {
    MemoryArea area;
    area.start = i << 20;
    area.end = area.start + 0x8000;
    area.name = i % 2 == 0 ? "[heap]" : "/lib/libc.so.6";
    area.rss_bytes = 0x4000;
    area.pages_known = true;
    memory.areas.push_back(area);
    memory.resident.push_back({area.start, area.start + 0x4000});
    memory.known.push_back({area.start, area.end, KnownUse::kNmt, 7, "GC"});
    memory.threads.push_back({static_cast<uint32_t>(i), "worker"});
  }
  const std::string block = WriteProcessBlock(memory);
  return {block, *UnpackText(kProcessBlockMagic, kProcessBlockVersion, kMaxProcessBytes, block.data(), block.size())};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace cadastre;
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  (void)ParseProcessBlock(text.data(), text.size());
  const std::string block = PackText(kProcessBlockMagic, kProcessBlockVersion, text);
  absl::StatusOr<ProcessMemory> memory = ParseProcessBlock(block.data(), block.size());
  if (!memory.ok()) return 0;
  uint64_t last = 0;
  for (const MemoryArea& area : memory->areas) {
    if (area.start < last || area.end <= area.start || area.rss_bytes > area.end - area.start) abort();
    last = area.end;
  }
  const std::string again = WriteProcessBlock(*memory);
  if (!ParseProcessBlock(again.data(), again.size()).ok()) abort();
  return 0;
}
