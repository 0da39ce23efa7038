#include "interposer/library_image.h"

#include <elf.h>
#include <string.h>

namespace cadastre {
namespace {

constexpr uint64_t kPageMask = format::kPageBytes - 1;

// The build id is a note of type NT_GNU_BUILD_ID by "GNU".
void ReadBuildId(uint64_t note, uint64_t bytes, LibraryImage* library) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    auto* header = reinterpret_cast<const ElfW(Nhdr)*>(note);
    uint64_t name_bytes = (static_cast<uint64_t>(header->n_namesz) + 3) & ~3ull;
    uint64_t body_bytes = (static_cast<uint64_t>(header->n_descsz) + 3) & ~3ull;
    uint64_t total = sizeof(*header) + name_bytes + body_bytes;
    if (total > bytes) return;
    if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == 4 && memcmp(header + 1, "GNU", 4) == 0) {
      uint32_t length = header->n_descsz < kBuildIdBytes ? header->n_descsz : kBuildIdBytes;
      library->build_id_at = reinterpret_cast<const uint8_t*>(header + 1) + name_bytes;
      memcpy(library->build_id, library->build_id_at, length);
      library->build_id_length = length;
      return;
    }
    note += total;
    bytes -= total;
  }
}

}  // namespace

void ReadProgramHeaders(uint64_t bias, const ElfW(Phdr) * headers, uint32_t count, LibraryImage* library) {
  LibraryEntry& entry = library->entry;
  entry.bias = bias;
  entry.start = ~0ull;
  entry.end = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (headers[i].p_type != PT_LOAD || headers[i].p_memsz == 0) continue;
    uint64_t start = (bias + headers[i].p_vaddr) & ~kPageMask;
    uint64_t end = (bias + headers[i].p_vaddr + headers[i].p_memsz + kPageMask) & ~kPageMask;
    if (start < entry.start) entry.start = start;
    if (end > entry.end) entry.end = end;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint64_t address = bias + headers[i].p_vaddr;
    bool inside = address >= entry.start && headers[i].p_memsz <= entry.end - entry.start &&
                  address <= entry.end - headers[i].p_memsz;
    if (!inside) continue;
    if (headers[i].p_type == PT_NOTE && library->build_id_length == 0)
      ReadBuildId(address, headers[i].p_memsz, library);
    if (headers[i].p_type == PT_GNU_EH_FRAME) {
      entry.eh_frame_hdr = reinterpret_cast<const uint8_t*>(address);
      entry.eh_frame_hdr_bytes = headers[i].p_memsz;
    }
  }
  // Only the file's own bytes of a readable segment: past them a page may be missing.
  for (uint32_t i = 0; i < count && entry.eh_frame_hdr != nullptr; i++) {
    uint64_t start = bias + headers[i].p_vaddr, hdr = reinterpret_cast<uint64_t>(entry.eh_frame_hdr);
    if (headers[i].p_type != PT_LOAD || (headers[i].p_flags & PF_R) == 0) continue;
    if (hdr >= start && hdr < start + headers[i].p_filesz) {
      entry.tables_start = start;
      entry.tables_end = start + headers[i].p_filesz;
    }
  }
  if (entry.tables_end == 0) entry.eh_frame_hdr = nullptr;
}

}  // namespace cadastre
