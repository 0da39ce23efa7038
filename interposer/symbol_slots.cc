#include "interposer/symbol_slots.h"

#include <sys/mman.h>

#include "interposer/early_text.h"
#include "interposer/elf_dynamic.h"
#include "interposer/elf_lookup.h"
#include "interposer/raw_syscall.h"

namespace cadastre {
namespace {

constexpr uint64_t kPageBytes = 4096;

struct Plan {
  const Redirection* redirections;
  size_t count;
  uint64_t lowest, highest;  // of all `from`
};

// The program headers of a loaded library. They are part of what is mapped first; a library that does not begin at its
// load address (nobody's linker makes such) is passed over.
struct Image {
  uint64_t bias = 0;
  const Elf64_Phdr* segments = nullptr;
  int count = 0;

  explicit Image(const link_map* map) : bias(map->l_addr) {
    if (bias == 0 || !IsWordReadable(bias)) return;
    const Elf64_Ehdr* header = reinterpret_cast<const Elf64_Ehdr*>(bias);
    const bool is_elf = header->e_ident[0] == ELFMAG0 && header->e_ident[1] == ELFMAG1 &&
                        header->e_ident[2] == ELFMAG2 && header->e_ident[3] == ELFMAG3;
    if (!is_elf || header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > kPageBytes) return;
    segments = reinterpret_cast<const Elf64_Phdr*>(bias + header->e_phoff);
    count = header->e_phnum;
  }
};

// What the loader made read-only when it had relocated the library (PT_GNU_RELRO: whole pages only).
class ReadOnlyRegion {
 public:
  explicit ReadOnlyRegion(const Image& image) {
    for (int i = 0; i < image.count; i++) {
      if (image.segments[i].p_type != PT_GNU_RELRO) continue;
      const uint64_t begin = image.bias + image.segments[i].p_vaddr;
      begin_ = begin & ~(kPageBytes - 1);
      end_ = (begin + image.segments[i].p_memsz) & ~(kPageBytes - 1);
    }
  }
  ~ReadOnlyRegion() {
    if (open_) Protect(PROT_READ);
  }
  bool MakeWritable(uint64_t address) {
    if (address < begin_ || address >= end_ || open_) return true;
    open_ = Protect(PROT_READ | PROT_WRITE);
    return open_;
  }

 private:
  bool Protect(int protection) const {
    return RawSyscall(SYS_mprotect, static_cast<long>(begin_), static_cast<long>(end_ - begin_), protection) == 0;
  }
  uint64_t begin_ = 0, end_ = 0;
  bool open_ = false;
};

bool IsInWritableSegment(const Image& image, uint64_t address) {
  for (int i = 0; i < image.count; i++) {
    const Elf64_Phdr& segment = image.segments[i];
    const uint64_t begin = image.bias + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0 && address >= begin &&
        address + sizeof(uint64_t) <= begin + segment.p_memsz)
      return true;
  }
  return false;
}

// What a word that was relocated for `name` and holds `value` shall hold; 0: what it holds.
uint64_t NewValue(const Plan& plan, const char* name, uint64_t value, bool is_call, const Elf64_Dyn* dynamic,
                  uint64_t bias) {
  for (size_t i = 0; i < plan.count; i++) {
    const Redirection& redirection = plan.redirections[i];
    const uint64_t from = reinterpret_cast<uint64_t>(redirection.from);
    const bool is_owner = redirection.owner->l_ld == dynamic;
    // A call that is not bound yet goes to the library's own procedure linkage table; below the bias, the library has
    // not been relocated yet.
    const bool is_candidate = is_owner ? is_call && redirection.is_bound_inside && value >= bias : value == from;
    if (is_candidate && TextEquals(redirection.name, name))
      return is_owner ? from : reinterpret_cast<uint64_t>(redirection.to);
  }
  return 0;
}

bool IsOwner(const Plan& plan, const Elf64_Dyn* dynamic) {
  for (size_t i = 0; i < plan.count; i++) {
    if (plan.redirections[i].owner->l_ld == dynamic) return true;
  }
  return false;
}

void RedirectIn(const Plan& plan, const Image& image, const Elf64_Dyn* dynamic, const DynamicTables& tables,
                const Relocations& relocations, ReadOnlyRegion* read_only) {
  const bool is_owner = IsOwner(plan, dynamic);
  const uint64_t count = relocations.first != nullptr ? relocations.bytes / sizeof(Elf64_Rela) : 0;
  for (uint64_t i = 0; i < count; i++) {
    const Elf64_Rela& relocation = relocations.first[i];
    const uint32_t type = ELF64_R_TYPE(relocation.r_info);
    const bool holds_address =
        type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT || (type == R_X86_64_64 && relocation.r_addend == 0);
    if (!holds_address) continue;
    const uint64_t address = tables.bias + relocation.r_offset;
    if (!IsInWritableSegment(image, address)) continue;
    uint64_t* slot = reinterpret_cast<uint64_t*>(address);
    const bool is_call = type == R_X86_64_JUMP_SLOT;
    if ((*slot < plan.lowest || *slot > plan.highest) && !(is_owner && is_call)) continue;
    const char* name = tables.strings + tables.symbols[ELF64_R_SYM(relocation.r_info)].st_name;
    const uint64_t value = NewValue(plan, name, *slot, is_call, dynamic, tables.bias);
    if (value == 0 || value == *slot || !read_only->MakeWritable(address)) continue;
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
  }
}

void RedirectIn(const Plan& plan, const link_map* map) {
  const Image image(map);
  const DynamicTables tables = ReadDynamic(map->l_addr, map->l_ld);
  if (image.count == 0 || tables.symbols == nullptr || tables.strings == nullptr) return;
  ReadOnlyRegion read_only(image);
  RedirectIn(plan, image, map->l_ld, tables, tables.data, &read_only);
  RedirectIn(plan, image, map->l_ld, tables, tables.calls, &read_only);
}

}  // namespace

void RedirectSlots(const Redirection* redirections, size_t count) {
  if (count == 0) return;
  Plan plan = {redirections, count, ~0ull, 0};
  for (size_t i = 0; i < count; i++) {
    const uint64_t from = reinterpret_cast<uint64_t>(redirections[i].from);
    if (from < plan.lowest) plan.lowest = from;
    if (from > plan.highest) plan.highest = from;
  }
  const link_map* own = OwnLibrary();
  for (const link_map* map = FirstLibrary(); map != nullptr; map = map->l_next) {
    if (map != own) RedirectIn(plan, map);
  }
}

}  // namespace cadastre
