// The functions of one library by address, from .symtab, .dynsym and .gnu_debugdata.
//
// A symbol with a size covers that much and no more; one without (assembler) reaches to the next symbol or to the end
// of its section. An address that nothing covers has no name: a wrong name is worse than none. Units: ELF virtual
// addresses. Errors: damaged tables give fewer symbols. Thread-safety: none before Sort; const after it.
//
// Example:
//   ElfSymbols symbols;
//   symbols.AddTable(*file, ElfSymbols::Table::kSymtab);
//   symbols.Sort();
//   SymbolHit hit = symbols.Find(0x1234);
#ifndef CADASTRE_SYMBOLIZER_ELF_SYMBOLS_H_
#define CADASTRE_SYMBOLIZER_ELF_SYMBOLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/elf_file.h"
#include "symbolizer/symbol_source.h"

namespace cadastre {

class ElfSymbols {
 public:
  enum class Table { kSymtab, kDynsym };

  // Adds the functions of a table. Returns how many there were.
  uint64_t AddTable(const ElfFile& file, Table table);
  // Adds the .symtab that is packed in .gnu_debugdata (LZMA).
  uint64_t AddMiniDebugInfo(const ElfFile& file);

  // Once, after the last Add. Addresses outside `executable` are dropped, unless it is empty.
  void Sort(const std::vector<AddressRange>& executable);

  SymbolHit Find(uint64_t address) const;
  size_t size() const { return symbols_.size(); }
  std::vector<std::string_view> Names() const;  // mangled; valid until the next Add

 private:
  struct Symbol {
    uint64_t begin, end;
    uint64_t outer_end;  // highest `end` of this symbol and all before it: how far back a search must look
    uint32_t name, name_length;
    uint8_t rank;  // among aliases the lowest is shown
    bool sized;
  };
  std::string_view NameOf(const Symbol& symbol) const {
    return std::string_view(names_).substr(symbol.name, symbol.name_length);
  }

  std::vector<Symbol> symbols_;
  std::string names_;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_ELF_SYMBOLS_H_
