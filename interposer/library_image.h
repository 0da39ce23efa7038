// What a loaded library says of itself in memory: its range, where its unwind tables lie, its build id.
//
// Format: ELF program headers and notes (System V ABI, chapter 5; NT_GNU_BUILD_ID of binutils).
// Thread- and signal-safety: reads memory, nothing else. The library must stay loaded meanwhile.
// Errors: what a header says that does not lie inside the library is as if it were not there.
//
// Example:
//   LibraryImage image = {};
//   ReadProgramHeaders(info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum, &image);
#ifndef CADASTRE_INTERPOSER_LIBRARY_IMAGE_H_
#define CADASTRE_INTERPOSER_LIBRARY_IMAGE_H_

#include <link.h>
#include <stdint.h>

#include "interposer/library_map.h"
#include "interposer/profile_format.h"

namespace cadastre {

inline constexpr uint32_t kBuildIdBytes = sizeof(format::LibraryRecord::build_id);

struct LibraryImage {
  LibraryEntry entry;
  uint32_t build_id_length;
  uint8_t build_id[kBuildIdBytes];
  const uint8_t* build_id_at;  // in the library's memory
};

// Fills range, tables and build id from `count` program headers in memory; the rest of `library` stays as it is.
// bias: what the library's addresses are moved by.
void ReadProgramHeaders(uint64_t bias, const ElfW(Phdr) * headers, uint32_t count, LibraryImage* library);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_LIBRARY_IMAGE_H_
