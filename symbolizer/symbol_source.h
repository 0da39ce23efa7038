// What a source of names answers for one address. Sources: elf_symbols (symbol tables), elf_plt (procedure linkage
// table), dwarf_lines (source lines and inlined functions). library_symbols.h puts them together.
//
// Thread-safety: plain values.
#ifndef CADASTRE_SYMBOLIZER_SYMBOL_SOURCE_H_
#define CADASTRE_SYMBOLIZER_SYMBOL_SOURCE_H_

#include <string>
#include <string_view>
#include <vector>

namespace cadastre {

// A function that covers an address. `mangled` is as the linker knows it and lives as long as the source.
struct SymbolHit {
  std::string_view mangled;
  bool found = false;
};

// One level of an inline chain: a function and the place in it. Innermost first; the last is the function that has code
// of its own.
struct SourceLevel {
  std::string mangled;    // linkage name; empty where the language has none
  std::string qualified;  // name with its namespaces and classes, for when there is no linkage name
  std::string file;
  int line = 0;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_SYMBOL_SOURCE_H_
