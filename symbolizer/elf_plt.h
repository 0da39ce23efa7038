// Names of procedure linkage table entries: an address in a PLT is shown as "malloc@plt".
//
// An entry jumps through a slot of the global offset table, and the relocation of that slot names the function. So the
// jump is decoded instead of counting entries, which linkers lay out in different ways. Errors: none; an entry that is
// not understood has no name. Thread-safety: const after construction.
//
// Example: ElfPlt plt(*file); std::string name = plt.Find(0x1036);  // "malloc@plt", or ""
#ifndef CADASTRE_SYMBOLIZER_ELF_PLT_H_
#define CADASTRE_SYMBOLIZER_ELF_PLT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/elf_file.h"

namespace cadastre {

class ElfPlt {
 public:
  ElfPlt() = default;  // knows nothing
  explicit ElfPlt(const ElfFile& file);
  // The function that the entry around `address` jumps to, with "@plt"; empty if there is none.
  std::string Find(uint64_t address) const;

 private:
  struct Entry {
    uint64_t begin, end;
    std::string name;
  };
  std::vector<Entry> entries_;  // sorted
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_ELF_PLT_H_
