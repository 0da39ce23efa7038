#include "symbolizer/elf_symbols.h"

#include <gelf.h>
#include <libelf.h>
#include <lzma.h>
#include <string.h>

#include <algorithm>

namespace cadastre {
namespace {

constexpr uint64_t kMaxDebugDataBytes = 256 << 20;
constexpr uint64_t kMaxNameBytes = 1u << 31;  // of all names together; offsets are 32 bits

// malloc has half a dozen names in libc. People know the one with the fewest underscores that everyone can link to.
uint8_t RankOf(std::string_view name, const GElf_Sym& symbol) {
  size_t underscores = 0;
  if (name.substr(0, 2) != "_Z" && name.substr(0, 2) != "_R") {
    while (underscores < name.size() && name[underscores] == '_') underscores++;
  }
  uint8_t binding = GELF_ST_BIND(symbol.st_info) == STB_GLOBAL ? 0 : GELF_ST_BIND(symbol.st_info) == STB_WEAK ? 1 : 2;
  uint8_t type = GELF_ST_TYPE(symbol.st_info) == STT_NOTYPE ? 1 : 0;
  return static_cast<uint8_t>(type * 64 + std::min<size_t>(underscores, 7) * 4 + binding);
}

bool IsFunction(const GElf_Sym& symbol) {
  int type = GELF_ST_TYPE(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) return false;
  if (symbol.st_shndx >= SHN_LORESERVE && symbol.st_shndx != SHN_XINDEX) return false;
  return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

struct Section {
  uint64_t begin, end;
  bool executable;
};

std::vector<Section> ReadSections(Elf* elf) {
  std::vector<Section> sections(1);
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf, scn)) != nullptr;) {
    GElf_Shdr header{};
    gelf_getshdr(scn, &header);
    uint64_t end = header.sh_addr + std::min<uint64_t>(header.sh_size, UINT64_MAX - header.sh_addr);
    sections.push_back({header.sh_addr, end, (header.sh_flags & SHF_EXECINSTR) != 0});
  }
  return sections;
}

std::string UnpackXz(const std::string& packed) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, 256 << 20, 0) != LZMA_OK) return "";
  std::string unpacked;
  std::string chunk(64 << 10, '\0');
  stream.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  lzma_ret result = LZMA_OK;
  while (result == LZMA_OK && unpacked.size() < kMaxDebugDataBytes) {
    stream.next_out = reinterpret_cast<uint8_t*>(chunk.data());
    stream.avail_out = chunk.size();
    result = lzma_code(&stream, LZMA_FINISH);
    unpacked.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  lzma_end(&stream);
  return result == LZMA_STREAM_END ? unpacked : "";
}

}  // namespace

uint64_t ElfSymbols::AddTable(const ElfFile& file, Table table) {
  uint64_t added = 0;
  Elf* elf = file.elf();
  const uint32_t wanted = table == Table::kSymtab ? SHT_SYMTAB : SHT_DYNSYM;
  std::vector<Section> sections;
  for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf, scn)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(scn, &header) == nullptr || header.sh_type != wanted || header.sh_entsize == 0) continue;
    Elf_Data* data = elf_getdata(scn, nullptr);
    Elf_Scn* strings_scn = elf_getscn(elf, header.sh_link);
    Elf_Data* strings = strings_scn == nullptr ? nullptr : elf_getdata(strings_scn, nullptr);
    if (data == nullptr || strings == nullptr || strings->d_buf == nullptr) continue;
    if (sections.empty()) sections = ReadSections(elf);
    const char* text = static_cast<const char*>(strings->d_buf);
    uint64_t count = data->d_size / header.sh_entsize;
    symbols_.reserve(symbols_.size() + count);
    for (uint64_t i = 0; i < count; i++) {
      GElf_Sym symbol;
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (!IsFunction(symbol) || symbol.st_name >= strings->d_size) continue;
      uint64_t section_end = UINT64_MAX;
      if (symbol.st_shndx < sections.size()) {
        const Section& section = sections[symbol.st_shndx];
        if (!section.executable || symbol.st_value < section.begin || symbol.st_value >= section.end) continue;
        section_end = section.end;
      }
      size_t length = strnlen(text + symbol.st_name, strings->d_size - symbol.st_name);
      if (length == 0 || names_.size() + length > kMaxNameBytes) continue;
      std::string_view name(text + symbol.st_name, length);
      Symbol entry;
      entry.begin = symbol.st_value;
      entry.sized = symbol.st_size != 0;
      entry.end = entry.sized ? symbol.st_value + std::min(symbol.st_size, UINT64_MAX - symbol.st_value) : section_end;
      entry.outer_end = 0;
      entry.rank = RankOf(name, symbol);
      entry.name = static_cast<uint32_t>(names_.size());
      entry.name_length = static_cast<uint32_t>(length);
      names_.append(name);
      symbols_.push_back(entry);
      added++;
    }
  }
  return added;
}

uint64_t ElfSymbols::AddMiniDebugInfo(const ElfFile& file) {
  std::string packed = file.SectionBytes(".gnu_debugdata", kMaxDebugDataBytes);
  if (packed.empty()) return 0;
  std::string bytes = UnpackXz(packed);
  if (bytes.empty()) return 0;
  std::unique_ptr<ElfFile> inner = ElfFile::FromMemory(std::move(bytes), file.path());
  return inner == nullptr ? 0 : AddTable(*inner, Table::kSymtab);
}

std::vector<std::string_view> ElfSymbols::Names() const {
  std::vector<std::string_view> names;
  names.reserve(symbols_.size());
  for (const Symbol& symbol : symbols_) names.push_back(NameOf(symbol));
  return names;
}

void ElfSymbols::Sort(const std::vector<AddressRange>& executable) {
  if (!executable.empty()) {
    std::erase_if(symbols_, [&](const Symbol& symbol) {
      return std::none_of(executable.begin(), executable.end(),
                          [&](const AddressRange& range) { return range.Has(symbol.begin); });
    });
  }
  // Of aliases (same address) the best comes last, which is where a search from above meets it first.
  std::sort(symbols_.begin(), symbols_.end(), [this](const Symbol& a, const Symbol& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.sized != b.sized) return b.sized;
    if (a.rank != b.rank) return a.rank > b.rank;
    return NameOf(a) > NameOf(b);
  });
  uint64_t outer_end = 0;
  uint64_t sized_end = 0;  // of all sized symbols so far: a label inside a function is not a function
  size_t kept = 0;
  for (size_t i = 0; i < symbols_.size(); i++) {
    Symbol symbol = symbols_[i];
    if (!symbol.sized) {
      if (symbol.begin < sized_end) continue;
      // To the next symbol at another address.
      size_t next = i + 1;
      while (next < symbols_.size() && symbols_[next].begin == symbol.begin) next++;
      if (next < symbols_.size()) symbol.end = std::min(symbol.end, symbols_[next].begin);
    } else {
      sized_end = std::max(sized_end, symbol.end);
    }
    outer_end = std::max(outer_end, symbol.end);
    symbol.outer_end = outer_end;
    symbols_[kept++] = symbol;
  }
  symbols_.resize(kept);
  symbols_.shrink_to_fit();
}

SymbolHit ElfSymbols::Find(uint64_t address) const {
  auto at = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                             [](uint64_t value, const Symbol& symbol) { return value < symbol.begin; });
  while (at != symbols_.begin()) {
    --at;
    if (address < at->end) return {NameOf(*at), true};
    if (address >= at->outer_end) break;  // nothing before reaches this far
  }
  return {};
}

}  // namespace cadastre
