// perf-PID.map lies in /tmp, where anybody may write.
#include <stdlib.h>

#include "symbolizer/jit_symbols.h"
#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() { return {}; }  // the corpus has files

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  absl::string_view text(reinterpret_cast<const char*>(bytes), size);
  cadastre::JitSymbols symbols = cadastre::JitSymbols::Parse(text);
  for (uint64_t pc : {0ull, 0x1000ull, 0x1050ull, 0x2008ull, 0x7f0a00001024ull, ~0ull}) {
    const std::string* name = symbols.Find(pc);
    if (name != nullptr && text.find(*name) == absl::string_view::npos) abort();
  }
  return 0;
}
