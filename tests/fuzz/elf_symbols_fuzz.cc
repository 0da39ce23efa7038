// Symbol tables, relocations and DWARF of damaged ELF files: this very program is the seed, cut small. A broken library
// costs its own names.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "symbolizer/dwarf_lines.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_plt.h"
#include "symbolizer/elf_symbols.h"
#include "tests/fuzz/corpus_runner.h"

namespace cadastre::testing {

std::vector<std::string> FuzzSeeds() {
  const char* path = getenv("CADASTRE_FUZZ_ELF");
  std::ifstream file(path == nullptr ? "/proc/self/exe" : path, std::ios::binary);
  return {std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>())};
}

}  // namespace cadastre::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace cadastre;
  std::string text(reinterpret_cast<const char*>(bytes), size);
  std::unique_ptr<ElfFile> file = ElfFile::FromMemory(text, "fuzz");
  if (file == nullptr) return 0;
  (void)file->build_id();
  (void)file->soname();
  (void)file->DebugLink();
  std::vector<AddressRange> ranges = file->ExecutableRanges();
  ElfSymbols symbols;
  symbols.AddTable(*file, ElfSymbols::Table::kSymtab);
  symbols.AddTable(*file, ElfSymbols::Table::kDynsym);
  symbols.AddMiniDebugInfo(*file);
  symbols.Sort(ranges);
  ElfPlt plt(*file);
  std::unique_ptr<DwarfLines> dwarf = DwarfLines::Open(*file, "");
  for (const AddressRange& range : ranges) {
    uint64_t step = std::max<uint64_t>(1, (range.end - range.begin) / 16);
    for (uint64_t i = 0, address = range.begin; i < 16 && address < range.end; i++, address += step) {
      (void)symbols.Find(address);
      (void)plt.Find(address);
      if (dwarf != nullptr) (void)dwarf->Find(address);
    }
  }
  return 0;
}
