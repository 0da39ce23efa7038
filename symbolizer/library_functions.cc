#include "symbolizer/library_functions.h"

#include <algorithm>

#include "symbolizer/demangle.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"

namespace cadastre {

std::vector<std::string> FunctionsOfLibrary(const std::string& path) {
  std::vector<std::string> functions;
  std::unique_ptr<ElfFile> file = ElfFile::Open(path);
  if (file == nullptr) return functions;
  ElfSymbols symbols;
  if (symbols.AddTable(*file, ElfSymbols::Table::kSymtab) == 0) symbols.AddTable(*file, ElfSymbols::Table::kDynsym);
  for (std::string_view name : symbols.Names()) functions.push_back(Demangle(name));
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  return functions;
}

}  // namespace cadastre
