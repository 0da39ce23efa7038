#include "interposer/elf_lookup.h"

#include <elf.h>
#include "interposer/early_text.h"
#include "interposer/elf_dynamic.h"

namespace cadastre {
namespace {

enum class Versions { kDefault, kHidden };

bool IsUsable(const DynamicTables& tables, uint32_t index, const char* name, Versions wanted) {
  const Elf64_Sym& symbol = tables.symbols[index];
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return false;
  if (ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) return false;
  const bool hidden = tables.versions != nullptr && (tables.versions[index] & kHiddenVersion) != 0;
  if (hidden != (wanted == Versions::kHidden)) return false;
  return TextEquals(tables.strings + symbol.st_name, name);
}

// Hash functions and table layouts: System V gABI, "Hash Table", and the GNU extension as binutils and glibc define it.
uint32_t LookupGnuHash(const DynamicTables& tables, const char* name, Versions wanted) {
  uint32_t hash = 5381;
  for (const char* c = name; *c != '\0'; c++) hash = hash * 33 + static_cast<uint8_t>(*c);
  const uint32_t bucket_count = tables.gnu_hash[0], first = tables.gnu_hash[1], bloom_words = tables.gnu_hash[2];
  const uint32_t bloom_shift = tables.gnu_hash[3];
  if (bucket_count == 0 || bloom_words == 0) return 0;
  const uint64_t* bloom = reinterpret_cast<const uint64_t*>(tables.gnu_hash + 4);
  const uint32_t* buckets = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
  const uint32_t* chain = buckets + bucket_count;
  const uint64_t word = bloom[(hash / 64) % bloom_words];
  if (((word >> (hash % 64)) & (word >> ((hash >> bloom_shift) % 64)) & 1) == 0) return 0;
  uint32_t index = buckets[hash % bucket_count];
  if (index < first) return 0;
  for (;; index++) {
    const uint32_t entry = chain[index - first];
    if ((entry | 1) == (hash | 1) && IsUsable(tables, index, name, wanted)) return index;
    if ((entry & 1) != 0) return 0;
  }
}

uint32_t LookupSysvHash(const DynamicTables& tables, const char* name, Versions wanted) {
  uint32_t hash = 0;
  for (const char* c = name; *c != '\0'; c++) {
    hash = (hash << 4) + static_cast<uint8_t>(*c);
    const uint32_t high = hash & 0xf0000000u;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  const uint32_t bucket_count = tables.sysv_hash[0];
  if (bucket_count == 0) return 0;
  const uint32_t* buckets = tables.sysv_hash + 2;
  const uint32_t* chain = buckets + bucket_count;
  for (uint32_t index = buckets[hash % bucket_count]; index != 0; index = chain[index]) {
    if (IsUsable(tables, index, name, wanted)) return index;
  }
  return 0;
}

// Index in the symbol table; 0: not there.
uint32_t Lookup(const DynamicTables& tables, const char* name, Versions wanted) {
  if (tables.symbols == nullptr || tables.strings == nullptr) return 0;
  if (tables.gnu_hash != nullptr) return LookupGnuHash(tables, name, wanted);
  return tables.sysv_hash != nullptr ? LookupSysvHash(tables, name, wanted) : 0;
}

void* Find(const DynamicTables& tables, const char* name, Versions wanted = Versions::kDefault) {
  const uint32_t index = Lookup(tables, name, wanted);
  if (index == 0) return nullptr;
  const Elf64_Sym& symbol = tables.symbols[index];
  void* address = reinterpret_cast<void*>(tables.bias + symbol.st_value);
  if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC) return reinterpret_cast<void* (*)()>(address)();
  return ELF64_ST_TYPE(symbol.st_info) == STT_TLS ? nullptr : address;
}

}  // namespace

void* FindInLibrary(const link_map* map, const char* name) { return Find(ReadDynamic(map->l_addr, map->l_ld), name); }

void* FindHiddenInLibrary(const link_map* map, const char* name) {
  return Find(ReadDynamic(map->l_addr, map->l_ld), name, Versions::kHidden);
}

Elf64_Versym* HiddenVersionOf(const link_map* map, const char* name) {
  const DynamicTables tables = ReadDynamic(map->l_addr, map->l_ld);
  const uint32_t index = tables.versions != nullptr ? Lookup(tables, name, Versions::kHidden) : 0;
  return index != 0 ? const_cast<Elf64_Versym*>(tables.versions + index) : nullptr;
}

Elf64_Versym NeededVersionOf(const link_map* map, const char* version) {
  const DynamicTables tables = ReadDynamic(map->l_addr, map->l_ld);
  const char* at = reinterpret_cast<const char*>(tables.needed_versions);
  while (at != nullptr) {
    const Elf64_Verneed* need = reinterpret_cast<const Elf64_Verneed*>(at);
    const char* entry = at + need->vn_aux;
    for (int i = 0; i < need->vn_cnt; i++) {
      const Elf64_Vernaux* auxiliary = reinterpret_cast<const Elf64_Vernaux*>(entry);
      if (TextEquals(tables.strings + auxiliary->vna_name, version)) return auxiliary->vna_other;
      entry += auxiliary->vna_next;
    }
    at = need->vn_next != 0 ? at + need->vn_next : nullptr;
  }
  return 0;
}

const link_map* FirstLibrary() { return _r_debug.r_map; }

const link_map* LibraryOf(const void* address) {
  const uint64_t wanted = reinterpret_cast<uint64_t>(address);
  const link_map* best = nullptr;
  for (const link_map* map = FirstLibrary(); map != nullptr; map = map->l_next) {
    if (map->l_addr <= wanted && (best == nullptr || map->l_addr >= best->l_addr)) best = map;
  }
  return best;
}

const link_map* OwnLibrary() { return LibraryOf(reinterpret_cast<const void*>(&OwnLibrary)); }

bool LibraryDefines(const link_map* map, const char* name) {
  return Lookup(ReadDynamic(map->l_addr, map->l_ld), name, Versions::kDefault) != 0;
}

const link_map* NextLibraryWith(const char* name) {
  const link_map* own = OwnLibrary();
  for (const link_map* map = own != nullptr ? own->l_next : nullptr; map != nullptr; map = map->l_next) {
    if (LibraryDefines(map, name)) return map;
  }
  return nullptr;
}

void* FindNextFunction(const char* name) {
  const link_map* library = NextLibraryWith(name);
  return library != nullptr ? FindInLibrary(library, name) : nullptr;
}

const link_map* AnyLibraryWith(const char* name) {
  const link_map* own = OwnLibrary();
  for (const link_map* map = FirstLibrary(); map != nullptr; map = map->l_next) {
    if (map != own && LibraryDefines(map, name)) return map;
  }
  return nullptr;
}

void* FindLoadedFunction(const char* name) {
  const link_map* library = AnyLibraryWith(name);
  return library != nullptr ? FindInLibrary(library, name) : nullptr;
}

DynamicTables ReadImage(uint64_t image) {
  const Elf64_Ehdr* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const Elf64_Phdr* segments = reinterpret_cast<const Elf64_Phdr*>(image + header->e_phoff);
  uint64_t bias = image;
  const Elf64_Dyn* dynamic = nullptr;
  for (int i = 0; i < header->e_phnum; i++) {
    if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0) bias = image - segments[i].p_vaddr;
  }
  for (int i = 0; i < header->e_phnum; i++) {
    if (segments[i].p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const Elf64_Dyn*>(bias + segments[i].p_vaddr);
  }
  return ReadDynamic(bias, dynamic);
}

void* FindInImage(uint64_t image, const char* name) { return Find(ReadImage(image), name); }

}  // namespace cadastre
