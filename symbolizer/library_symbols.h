// All names of one library: opens its file, checks that it is the one that was recorded, finds its debug file, and
// answers for addresses.
//
// Units: ELF virtual addresses. Errors: none; `problem` says in one line why there are no names, if there is something
// to say. Thread-safety: none.
//
// Example:
//   LibrarySymbols symbols(library, options);
//   std::vector<Frame> frames = symbols.Find(address);   // empty = no name
#ifndef CADASTRE_SYMBOLIZER_LIBRARY_SYMBOLS_H_
#define CADASTRE_SYMBOLIZER_LIBRARY_SYMBOLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "symbolizer/dwarf_lines.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_plt.h"
#include "symbolizer/elf_symbols.h"
#include "symbolizer/profile.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {

class LibrarySymbols {
 public:
  LibrarySymbols(const Library& library, const SymbolizerOptions& options);

  // Innermost inlined function first. `library` of the frames is not filled.
  std::vector<Frame> Find(uint64_t address);

  // Empty where the file name begins with it (libfoo.so.1.2 has libfoo.so.1).
  const std::string& soname() const { return soname_; }
  const std::string& problem() const { return problem_; }

 private:
  void ReadTables(const SymbolizerOptions& options);
  std::string PltName(uint64_t address);

  std::string path_;
  std::string build_id_;           // as recorded
  std::string file_path_;          // under root; empty = the file is not there or is another one
  std::unique_ptr<ElfFile> file_;  // open only while something reads it
  std::unique_ptr<ElfFile> debug_file_;
  std::unique_ptr<DwarfLines> dwarf_;
  std::unique_ptr<ElfPlt> plt_;
  ElfSymbols symbols_;
  std::string soname_;
  std::string problem_;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_LIBRARY_SYMBOLS_H_
