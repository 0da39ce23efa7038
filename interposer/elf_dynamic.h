// The tables that a loaded ELF file's dynamic section points to, for look-ups (elf_lookup.cc) and for its relocated
// slots (symbol_slots.cc). Sources: System V gABI, "Dynamic Section"; glibc's elf/link.h. Reads only; allocates
// nothing.
#ifndef CADASTRE_INTERPOSER_ELF_DYNAMIC_H_
#define CADASTRE_INTERPOSER_ELF_DYNAMIC_H_

#include <elf.h>
#include <stdint.h>

namespace cadastre {

struct Relocations {
  const Elf64_Rela* first = nullptr;
  uint64_t bytes = 0;
};

struct DynamicTables {
  uint64_t bias = 0;
  const Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* sysv_hash = nullptr;
  const Elf64_Versym* versions = nullptr;
  const Elf64_Verneed* needed_versions = nullptr;
  Relocations data, calls;  // DT_RELA, DT_JMPREL
};

inline DynamicTables ReadDynamic(uint64_t bias, const Elf64_Dyn* dynamic) {
  DynamicTables tables;
  tables.bias = bias;
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; dynamic++) {
    const uint64_t value = dynamic->d_un.d_val;
    // glibc relocates the d_ptr values of ordinary libraries in place but not those of the vDSO; a value below the load
    // address is still an offset.
    const void* address = reinterpret_cast<const void*>(value < bias ? value + bias : value);
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        tables.symbols = static_cast<const Elf64_Sym*>(address);
        break;
      case DT_STRTAB:
        tables.strings = static_cast<const char*>(address);
        break;
      case DT_GNU_HASH:
        tables.gnu_hash = static_cast<const uint32_t*>(address);
        break;
      case DT_HASH:
        tables.sysv_hash = static_cast<const uint32_t*>(address);
        break;
      case DT_VERSYM:
        tables.versions = static_cast<const Elf64_Versym*>(address);
        break;
      case DT_VERNEED:
        tables.needed_versions = static_cast<const Elf64_Verneed*>(address);
        break;
      case DT_RELA:
        tables.data.first = static_cast<const Elf64_Rela*>(address);
        break;
      case DT_RELASZ:
        tables.data.bytes = value;
        break;
      case DT_JMPREL:
        tables.calls.first = static_cast<const Elf64_Rela*>(address);
        break;
      case DT_PLTRELSZ:
        tables.calls.bytes = value;
        break;
    }
  }
  return tables;
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_ELF_DYNAMIC_H_
