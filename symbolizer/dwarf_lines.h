// Source lines and inlined functions of one library, from its DWARF (own sections, a debug file, dwz's shared file):
// the one file that names libdw.
//
// Read lazily: a compilation unit's functions are indexed when an address first falls into it.
// Units: ELF virtual addresses; lines from 1.
// Errors: damaged DWARF costs its own answers. Thread-safety: none.
//
// Example:
//   std::unique_ptr<DwarfLines> dwarf = DwarfLines::Open(*file);
//   std::vector<SourceLevel> levels = dwarf->Find(0x1234);   // innermost inlined function first; empty = not known
#ifndef CADASTRE_SYMBOLIZER_DWARF_LINES_H_
#define CADASTRE_SYMBOLIZER_DWARF_LINES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "symbolizer/elf_file.h"
#include "symbolizer/symbol_source.h"

namespace cadastre {

class DwarfLines {
 public:
  // nullptr if the file has no DWARF. `file` must outlive the result.
  static std::unique_ptr<DwarfLines> Open(const ElfFile& file);
  ~DwarfLines();

  std::vector<SourceLevel> Find(uint64_t address);

 private:
  struct State;
  DwarfLines();
  std::unique_ptr<State> state_;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_DWARF_LINES_H_
