#include "symbolizer/elf_plt.h"

#include <gelf.h>
#include <libelf.h>
#include <string.h>

#include <algorithm>

namespace cadastre {
namespace {

using SlotNames = absl::flat_hash_map<uint64_t, std::string>;  // address of the slot -> symbol

void ReadRelocations(Elf* elf, Elf_Scn* scn, const GElf_Shdr& header, SlotNames* names) {
  Elf_Data* relocations = elf_getdata(scn, nullptr);
  Elf_Scn* symbols_scn = elf_getscn(elf, header.sh_link);
  GElf_Shdr symbols_header;
  if (relocations == nullptr || symbols_scn == nullptr || gelf_getshdr(symbols_scn, &symbols_header) == nullptr) return;
  Elf_Data* symbols = elf_getdata(symbols_scn, nullptr);
  if (symbols == nullptr || header.sh_entsize == 0) return;
  for (uint64_t i = 0; i < relocations->d_size / header.sh_entsize; i++) {
    GElf_Rela relocation;
    GElf_Sym symbol;
    if (gelf_getrela(relocations, static_cast<int>(i), &relocation) == nullptr) return;
    uint64_t type = GELF_R_TYPE(relocation.r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
    if (gelf_getsym(symbols, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) == nullptr) continue;
    const char* name = elf_strptr(elf, symbols_header.sh_link, symbol.st_name);
    if (name != nullptr && name[0] != '\0') (*names)[relocation.r_offset] = name;
  }
}

}  // namespace

ElfPlt::ElfPlt(const ElfFile& file) {
  Elf* elf = file.elf();
  size_t section_names;
  if (elf_getshdrstrndx(elf, &section_names) != 0) return;
  SlotNames slot_names;
  std::vector<std::pair<Elf_Scn*, GElf_Shdr>> tables;
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf, scn)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == nullptr) continue;
    const char* name = elf_strptr(elf, section_names, header.sh_name);
    if (header.sh_type == SHT_RELA && (header.sh_flags & SHF_ALLOC) != 0)
      ReadRelocations(elf, scn, header, &slot_names);
    if (name != nullptr && strncmp(name, ".plt", 4) == 0 && header.sh_type == SHT_PROGBITS)
      tables.emplace_back(scn, header);
  }
  if (slot_names.empty()) return;
  for (auto& [scn, header] : tables) {
    Elf_Data* data = elf_getdata(scn, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const uint64_t entry_bytes = header.sh_entsize == 8 ? 8 : 16;
    const auto* code = static_cast<const uint8_t*>(data->d_buf);
    for (uint64_t at = 0; at + entry_bytes <= data->d_size; at += entry_bytes) {
      // ff 25 disp32: jmp *disp(%rip), after an optional endbr64 (4 bytes) and bnd prefix (1 byte)
      for (uint64_t i = 0; i + 6 <= entry_bytes && i <= 5; i++) {
        const uint8_t* jump = code + at + i;
        if (jump[0] != 0xff || jump[1] != 0x25) continue;
        int32_t displacement;
        memcpy(&displacement, jump + 2, sizeof(displacement));
        uint64_t begin = header.sh_addr + at;
        auto slot = slot_names.find(begin + i + 6 + static_cast<int64_t>(displacement));
        if (slot != slot_names.end()) entries_.push_back({begin, begin + entry_bytes, slot->second});
        break;
      }
    }
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
}

std::string ElfPlt::Find(uint64_t address) const {
  auto at = std::upper_bound(entries_.begin(), entries_.end(), address,
                             [](uint64_t value, const Entry& entry) { return value < entry.begin; });
  if (at == entries_.begin() || address >= (--at)->end) return "";
  return at->name + "@plt";
}

}  // namespace cadastre
