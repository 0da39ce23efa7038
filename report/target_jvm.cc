// What HotSpot's exported tables say, read from outside: found by name in the dynamic symbols of the libjvm.so that the
// process has loaded, so neither its file nor a file system of its own is needed.
#include <elf.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/match.h"
#include "report/target_memory.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxProgramHeaders = 64, kMaxDynamic = 512, kMaxChain = 4096, kMaxEntries = 16384;
constexpr size_t kMaxName = 256;

// GNU hash of a symbol's name (https://flapenguin.me/elf-dt-gnu-hash describes the table).
uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != '\0'; name++) hash = hash * 33 + static_cast<uint8_t>(*name);
  return hash;
}

class LoadedLibrary {
 public:
  LoadedLibrary(const TargetMemory& memory, uint64_t base) : memory_(memory), base_(base) {
    std::optional<Elf64_Ehdr> header = memory.Get<Elf64_Ehdr>(base);
    if (!header.has_value() || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(Elf64_Phdr))
      return;
    for (uint64_t i = 0; i < std::min<uint64_t>(header->e_phnum, kMaxProgramHeaders); i++) {
      std::optional<Elf64_Phdr> segment = memory.Get<Elf64_Phdr>(base + header->e_phoff + i * sizeof(Elf64_Phdr));
      if (!segment.has_value()) return;
      if (segment->p_type == PT_DYNAMIC) ReadDynamic(base + segment->p_vaddr);
    }
  }

  // 0 = it defines no such symbol.
  uint64_t Find(const char* name) const {
    if (symbols_ == 0 || strings_ == 0 || hash_ == 0) return 0;
    // nbuckets, symoffset, bloom_size, bloom_shift; then the filter, the buckets and the chains
    std::optional<std::array<uint32_t, 4>> head = memory_.Get<std::array<uint32_t, 4>>(hash_);
    if (!head.has_value() || (*head)[0] == 0) return 0;
    const auto [buckets, first, filter_words, shift] = *head;
    const uint64_t bucket_table = hash_ + 16 + filter_words * 8ull, chains = bucket_table + buckets * 4ull;
    const uint32_t hash = GnuHash(name);
    uint32_t symbol = memory_.Get<uint32_t>(bucket_table + hash % buckets * 4ull).value_or(0);
    if (symbol < first) return 0;
    for (uint64_t i = 0; i < kMaxChain; i++, symbol++) {
      const uint32_t chain = memory_.Get<uint32_t>(chains + (symbol - first) * 4ull).value_or(1);
      if ((chain | 1) == (hash | 1)) {
        std::optional<Elf64_Sym> entry = memory_.Get<Elf64_Sym>(symbols_ + symbol * sizeof(Elf64_Sym));
        if (entry.has_value() && entry->st_shndx != SHN_UNDEF &&
            memory_.Text(strings_ + entry->st_name, kMaxName) == name)
          return base_ + entry->st_value;
      }
      if ((chain & 1) != 0) break;
    }
    return 0;
  }

 private:
  void ReadDynamic(uint64_t at) {
    for (uint64_t i = 0; i < kMaxDynamic; i++) {
      std::optional<Elf64_Dyn> entry = memory_.Get<Elf64_Dyn>(at + i * sizeof(Elf64_Dyn));
      if (!entry.has_value() || entry->d_tag == DT_NULL) return;
      // The loader has made addresses of these, but not in every libc.
      uint64_t value = entry->d_un.d_ptr;
      if (value < base_) value += base_;
      if (entry->d_tag == DT_SYMTAB) symbols_ = value;
      if (entry->d_tag == DT_STRTAB) strings_ = value;
      if (entry->d_tag == DT_GNU_HASH) hash_ = value;
    }
  }

  const TargetMemory& memory_;
  uint64_t base_, symbols_ = 0, strings_ = 0, hash_ = 0;
};

struct VmStructEntry {
  uint64_t type_name, field_name, type_string;
  int32_t is_static;
  int32_t padding;
  uint64_t offset;
  uint64_t address;
};
static_assert(sizeof(VmStructEntry) == 48);

// "Type::_field" → offset, or address where it is static.
using Fields = std::map<std::string, uint64_t>;

Fields ReadFields(const TargetMemory& memory, uint64_t table) {
  static constexpr const char* kWanted[] = {"CodeCache::_low_bound",    "CodeCache::_high_bound",
                                            "Universe::_collectedHeap", "CollectedHeap::_reserved",
                                            "MemRegion::_start",        "MemRegion::_word_size"};
  Fields fields;
  for (uint64_t i = 0; i < kMaxEntries && fields.size() < std::size(kWanted); i++) {
    std::optional<VmStructEntry> entry = memory.Get<VmStructEntry>(table + i * sizeof(VmStructEntry));
    if (!entry.has_value() || entry->type_name == 0) break;
    std::string name = memory.Text(entry->type_name, kMaxName);
    if (name != "CodeCache" && name != "Universe" && name != "CollectedHeap" && name != "MemRegion") continue;
    name += "::" + memory.Text(entry->field_name, kMaxName);
    if (std::find(std::begin(kWanted), std::end(kWanted), name) != std::end(kWanted))
      fields[name] = entry->is_static != 0 ? entry->address : entry->offset;
  }
  return fields;
}

}  // namespace

std::vector<KnownRange> FindJvmRanges(const TargetMemory& memory, const std::vector<MemoryArea>& areas) {
  std::vector<KnownRange> found;
  auto library = std::find_if(areas.begin(), areas.end(), [](const MemoryArea& area) {
    return absl::EndsWith(area.name, "/libjvm.so") && area.offset == 0;
  });
  if (library == areas.end()) return found;
  const uint64_t variable = LoadedLibrary(memory, library->start).Find("gHotSpotVMStructs");
  if (variable == 0) return found;
  Fields fields = ReadFields(memory, memory.Get<uint64_t>(variable).value_or(0));
  auto word_at = [&](const char* field) {
    auto entry = fields.find(field);
    return entry == fields.end() ? 0 : memory.Get<uint64_t>(entry->second).value_or(0);
  };
  const uint64_t low = word_at("CodeCache::_low_bound"), high = word_at("CodeCache::_high_bound");
  if (low != 0 && low < high) found.push_back({low, high, KnownUse::kCodeCache, 0, ""});
  const uint64_t heap = word_at("Universe::_collectedHeap");
  if (heap != 0 && fields.contains("CollectedHeap::_reserved") && fields.contains("MemRegion::_start") &&
      fields.contains("MemRegion::_word_size")) {
    const uint64_t reserved = heap + fields["CollectedHeap::_reserved"];
    const uint64_t start = memory.Get<uint64_t>(reserved + fields["MemRegion::_start"]).value_or(0);
    const uint64_t words = memory.Get<uint64_t>(reserved + fields["MemRegion::_word_size"]).value_or(0);
    if (start != 0 && words != 0 && words < (1ull << 54) && start + words * 8 > start)
      found.push_back({start, start + words * 8, KnownUse::kJavaHeap, 0, ""});
  }
  return found;
}

}  // namespace cadastre
