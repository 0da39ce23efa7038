// Profiles come from disks that were full, from processes that died anywhere and from strangers: no bytes may crash the
// reader.
#include <cstdlib>
#include <cstring>

#include "symbolizer/profile.h"
#include "symbolizer/symbol_block.h"
#include "symbolizer/symbolizer.h"
#include "tests/fuzz/corpus_runner.h"
#include "tests/support/profile_builder.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() {
  ProfileBuilder builder;
  uint32_t library = builder.AddLibrary("/usr/lib/libfuzz.so", "0011223344");
  uint32_t thread = builder.AddThread("worker");
  uint64_t raw = format::MakeLibraryFrame(format::kFrameReturn, library, 0x1234);
  uint32_t site = builder.AddSite({raw, builder.JavaFrame("com.acme.A.b", 7)});
  builder.AddSample(site, 0x1000, 100, 1000, 5, thread);
  builder.AddSample(site, 0x2000, 100, 1000, 6, thread);
  uint32_t buffer = builder.AddBuffer({{site, 1, 65536, 10, 1.0}, {site, 1, 65536, 10, 1.0}});
  builder.buffer(buffer).redo = {1, 0, format::kDeltaBytes, 0, 2000, 2010};
  std::string plain = builder.Build();
  // The same with stored symbols behind it.
  SymbolBlock block;
  Frame frame;
  frame.function = "acme::f";
  block.frames.push_back({raw, {frame, frame}});
  std::string symbols = WriteSymbolBlock(block);
  std::string with_symbols = plain;
  format::Header header;
  memcpy(&header, plain.data(), sizeof(header));
  header.region_count = format::kRegionSymbols + 1;
  header.regions[format::kRegionSymbols] = {plain.size(), format::kPageBytes, 1, 0};
  header.file_bytes += format::kPageBytes;
  memcpy(with_symbols.data(), &header, sizeof(header));
  symbols.resize(format::kPageBytes);
  return {plain, with_symbols + symbols};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace cadastre;
  absl::StatusOr<Profile> profile = ParseProfile("/nowhere/fuzz.cad", reinterpret_cast<const char*>(bytes), size);
  if (!profile.ok()) {
    if (profile.status().message().find('\n') != absl::string_view::npos) abort();  // one line
    return 0;
  }
  for (const LiveSample& sample : profile->live) {
    if (sample.site >= profile->sites.size() || sample.thread >= profile->threads.size()) abort();
  }
  Symbolizer symbolizer(*profile, {});
  for (const Site& site : profile->sites) {
    if (site.frames.empty()) abort();
    for (uint64_t raw : site.frames) {
      if (symbolizer.Resolve(raw).empty()) abort();
    }
  }
  return 0;
}
