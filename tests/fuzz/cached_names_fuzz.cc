// A file of the symbol cache: its bytes, and its text with a right checksum.
#include <stdlib.h>

#include "symbolizer/cached_names.h"
#include "symbolizer/packed_frames.h"
#include "symbolizer/packed_text.h"
#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() {
  Frame frame;
  frame.function = "acme::billing::Index::add";
  frame.file = "/src/index.cc";
  frame.line = 300;
  frame.resolved = true;
  CachedNames cached{.build_id = "9f3c", .sources = "library 4096 bytes", .soname = "libacme.so.1", .names = {}};
  for (uint64_t address : {0x0, 0x10, 0x1234, 0x20000}) cached.names.push_back({address, {frame, frame}});
  cached.names.push_back({UINT64_MAX, {}});
  const std::string file = WriteCachedNames(cached);
  return {file, *UnpackText(kCachedNamesMagic, kCachedNamesVersion, kMaxFramesBytes, file.data(), file.size())};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace cadastre;
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  (void)ParseCachedNames(text.data(), text.size());
  const std::string file = PackText(kCachedNamesMagic, kCachedNamesVersion, text);
  absl::StatusOr<CachedNames> cached = ParseCachedNames(file.data(), file.size());
  if (!cached.ok()) return 0;
  for (size_t i = 1; i < cached->names.size(); i++) {
    if (cached->names[i].first <= cached->names[i - 1].first) abort();  // it is searched by halves
  }
  const std::string again = WriteCachedNames(*cached);
  if (!ParseCachedNames(again.data(), again.size()).ok()) abort();
  return 0;
}
