// All names of one library: opens its file, checks that it is the one that was recorded, finds its debug file, and
// answers for addresses. What the cache knows is answered without reading tables; they are read for the first address
// that it does not know.
//
// Units: ELF virtual addresses. Errors: none; `problem` says in one line why there are no names, if there is something
// to say. Thread-safety: none.
//
// Example:
//   LibrarySymbols symbols(library, options, &cache);
//   std::vector<Frame> frames = symbols.Find(address);   // empty = no name
//   symbols.StoreNames(&cache);
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
#include "symbolizer/symbol_cache.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {

class LibrarySymbols {
 public:
  // `options` must outlive it.
  LibrarySymbols(const Library& library, const SymbolizerOptions& options, SymbolCache* cache);

  // Innermost inlined function first. `library` of the frames is not filled.
  std::vector<Frame> Find(uint64_t address);

  // After the first Find. Empty where the file name begins with it (libfoo.so.1.2 has libfoo.so.1).
  std::string soname() const;
  const std::string& problem() const { return problem_; }

  // What the tables were asked since the last time. Returns whether there was anything.
  bool StoreNames(SymbolCache* cache);

 private:
  void OpenFile();
  std::string Sources() const;
  void ReadTables();
  std::vector<Frame> Look(uint64_t address);
  std::string PltName(uint64_t address);

  const SymbolizerOptions& options_;
  std::string path_;
  std::string build_id_;           // as recorded
  std::string file_path_;          // under root; empty = the file is not there or is another one
  std::unique_ptr<ElfFile> file_;  // open only while something reads it
  std::unique_ptr<ElfFile> debug_file_;
  std::unique_ptr<DwarfLines> dwarf_;
  std::unique_ptr<ElfPlt> plt_;
  ElfSymbols symbols_;
  std::string own_soname_;
  std::string problem_;
  bool has_read_tables_ = false;

  std::string sources_;               // that names are read from; empty = nothing is stored
  std::vector<NameOfAddress> known_;  // from the cache, by address
  std::vector<NameOfAddress> found_;  // in the tables since
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_LIBRARY_SYMBOLS_H_
