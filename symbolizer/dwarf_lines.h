// Source lines and inlined functions of one library, from its DWARF (own sections, a debug file, dwz's shared file):
// the one file that names libdw.
//
// Read lazily: a compilation unit's functions are indexed when an address first falls into it.
// Units: ELF virtual addresses; lines from 1.
// Errors: damaged DWARF costs its own answers. Thread-safety: none.
//
// Example:
//   std::unique_ptr<DwarfLines> dwarf = DwarfLines::Open(*file, root);
//   std::vector<SourceLevel> levels = dwarf->Find(0x1234);   // innermost inlined function first; empty = not known
#ifndef CADASTRE_SYMBOLIZER_DWARF_LINES_H_
#define CADASTRE_SYMBOLIZER_DWARF_LINES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "symbolizer/elf_file.h"
#include "symbolizer/symbol_source.h"

namespace cadastre {

class DwarfLines {
 public:
  // nullptr if the file has no DWARF. `file` must outlive the result. The shared file is looked for under `root`.
  static std::unique_ptr<DwarfLines> Open(const ElfFile& file, const std::string& root);
  ~DwarfLines();

  std::vector<SourceLevel> Find(uint64_t address);

  // False: the file with what it shares with others (dwz) is not there.
  bool is_complete() const;

 private:
  struct State;
  DwarfLines();
  std::unique_ptr<State> state_;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_DWARF_LINES_H_
