#include "report/target_library.h"

#include <elf.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "report/area_names.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxProgramHeaders = 64, kMaxDynamic = 512, kMaxChain = 4096;
constexpr size_t kMaxSymbol = 256;

// GNU hash of a symbol's name (https://flapenguin.me/elf-dt-gnu-hash describes the table).
uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; name++) hash = hash * 33 + static_cast<uint8_t>(*name);
  return hash;
}

}  // namespace

LoadedLibrary::LoadedLibrary(const TargetMemory& memory, uint64_t start) : memory_(memory) {
  std::optional<Elf64_Ehdr> header = memory.Get<Elf64_Ehdr>(start);
  if (!header.has_value() || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phentsize != sizeof(Elf64_Phdr))
    return;
  std::vector<Elf64_Phdr> segments(std::min<uint64_t>(header->e_phnum, kMaxProgramHeaders));
  if (!memory.Read(start + header->e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) return;
  auto first = std::find_if(segments.begin(), segments.end(), [](const Elf64_Phdr& segment) {
    return segment.p_type == PT_LOAD && segment.p_offset / kPage == 0;
  });
  if (first == segments.end()) return;
  bias_ = start - first->p_vaddr / kPage * kPage;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD) end_ = std::max(end_, bias_ + segment.p_vaddr + segment.p_memsz);
    if (segment.p_type == PT_DYNAMIC) dynamic_ = bias_ + segment.p_vaddr;
  }
}

uint64_t LoadedLibrary::Find(const char* name) const {
  const Tables tables = ReadDynamic();
  if (tables.symbols == 0 || tables.strings == 0 || tables.hash == 0) return 0;
  // nbuckets, symoffset, bloom_size, bloom_shift; then the filter, the buckets and the chains
  std::optional<std::array<uint32_t, 4>> head = memory_.Get<std::array<uint32_t, 4>>(tables.hash);
  if (!head.has_value() || (*head)[0] == 0) return 0;
  const auto [buckets, first, filter_words, shift] = *head;
  const uint64_t bucket_table = tables.hash + 16 + filter_words * 8ull, chains = bucket_table + buckets * 4ull;
  const uint32_t hash = GnuHash(name);
  uint32_t symbol = memory_.Get<uint32_t>(bucket_table + hash % buckets * 4ull).value_or(0);
  if (symbol < first) return 0;
  for (uint64_t i = 0; i < kMaxChain; i++, symbol++) {
    const uint32_t chain = memory_.Get<uint32_t>(chains + (symbol - first) * 4ull).value_or(1);
    if ((chain | 1) == (hash | 1)) {
      std::optional<Elf64_Sym> entry = memory_.Get<Elf64_Sym>(tables.symbols + symbol * sizeof(Elf64_Sym));
      if (entry.has_value() && entry->st_shndx != SHN_UNDEF &&
          memory_.Text(tables.strings + entry->st_name, kMaxSymbol) == name)
        return bias_ + entry->st_value;
    }
    if ((chain & 1) != 0) break;
  }
  return 0;
}

LoadedLibrary::Tables LoadedLibrary::ReadDynamic() const {
  Tables tables;
  for (uint64_t i = 0; dynamic_ != 0 && i < kMaxDynamic; i++) {
    std::optional<Elf64_Dyn> entry = memory_.Get<Elf64_Dyn>(dynamic_ + i * sizeof(Elf64_Dyn));
    if (!entry.has_value() || entry->d_tag == DT_NULL) break;
    // The loader has made addresses of these, but not in every libc.
    uint64_t value = entry->d_un.d_ptr;
    if (value < bias_) value += bias_;
    if (entry->d_tag == DT_SYMTAB) tables.symbols = value;
    if (entry->d_tag == DT_STRTAB) tables.strings = value;
    if (entry->d_tag == DT_GNU_HASH) tables.hash = value;
  }
  return tables;
}

std::vector<KnownRange> FindLibraries(const TargetMemory& memory, const std::vector<MemoryArea>& areas) {
  const std::set<std::string> libraries = LibraryNames(areas);
  std::vector<KnownRange> found;
  for (const MemoryArea& area : areas) {
    if (area.offset != 0 || !area.readable || !libraries.contains(area.name)) continue;
    if (const uint64_t end = LoadedLibrary(memory, area.start).end(); end > area.start)
      found.push_back({area.start, end, KnownUse::kLibrary, 0, ""});
  }
  return found;
}

}  // namespace cadastre
