#include "interposer/allocator_code.h"

#include <elf.h>
#include <link.h>

#include "interposer/elf_lookup.h"
#include "interposer/real_allocator.h"

namespace cadastre {
namespace {

uint64_t code_start, code_end;
uint32_t is_known;

void Learn() {
  const link_map* library = nullptr;
  if (!MallocIsServedBeforeUs(&library)) library = RealAllocatorLibrary();
  if (library != nullptr && library != FirstLibrary() && FindInLibrary(library, "gnu_get_libc_version") == nullptr) {
    // A shared library's load address is where its ELF header lies.
    const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(library->l_addr);
    const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(library->l_addr + header->e_phoff);
    uint64_t end = 0;
    for (int i = 0; i < header->e_phnum; i++) {
      const uint64_t segment_end = segments[i].p_vaddr + segments[i].p_memsz;
      if (segments[i].p_type == PT_LOAD && segment_end > end) end = segment_end;
    }
    __atomic_store_n(&code_end, library->l_addr + end, __ATOMIC_RELAXED);
    __atomic_store_n(&code_start, library->l_addr, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
}

}  // namespace

bool IsAllocatorCode(uint64_t pc) {
  if (__atomic_load_n(&is_known, __ATOMIC_ACQUIRE) == 0) {
    if (!RealAllocatorIsReady()) return false;
    Learn();
  }
  return pc >= __atomic_load_n(&code_start, __ATOMIC_RELAXED) && pc < __atomic_load_n(&code_end, __ATOMIC_RELAXED);
}

}  // namespace cadastre
