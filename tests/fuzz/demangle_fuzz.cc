// Symbols are bytes from files that anybody made; a demangler is a parser with recursion and back references.
#include <algorithm>
#include <string_view>

#include "symbolizer/demangle.h"
#include "symbolizer/library_names.h"
#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() { return {}; }  // the corpus has files

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(bytes), size);
  // Each line is a symbol.
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    std::string_view symbol = text.substr(at, end - at);
    (void)cadastre::Demangle(symbol);
    (void)cadastre::QualifiedCppName(symbol);
    (void)cadastre::LibraryNames(symbol, symbol);
    at = end + 1;
  }
  return 0;
}
