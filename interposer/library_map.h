// Which ELF file a pc lies in, without the loader's lock.
//
// A private, append-only table of loaded libraries: filled in the constructor by dl_iterate_phdr, later by _dl_find_object (weak,
// glibc 2.35: lock-free) when a hook meets a pc that no entry covers. An entry is retired when dlclose took its library away; its index keeps its meaning for ever.
// Thread- and signal-safety: LookupLibrary is lock-free and safe in hooks. LibraryMapInit and LibraryMapAfterDlclose run outside
// hooks and may take the loader's lock.
#ifndef CADASTRE_INTERPOSER_LIBRARY_MAP_H_
#define CADASTRE_INTERPOSER_LIBRARY_MAP_H_

#include <stdint.h>

namespace cadastre {

struct LibraryEntry {
  uint32_t index;     // in the profile's libraries region; 0 = none
  uint64_t bias;      // l_addr
  uint64_t start, end;
  const uint8_t* eh_frame_hdr;  // in memory; nullptr = no unwind tables
  uint64_t eh_frame_hdr_bytes;
};

void LibraryMapInit();
void LibraryMapAfterDlclose();       // retire what is gone, flush unwind rules (a new generation)
void LibraryMapBeforeDlclose();      // from here to AfterDlclose cached rules are not trusted
uint32_t LibraryMapGeneration();     // changes whenever cached knowledge about a pc may be stale

// False if no known library covers pc.
bool LookupLibrary(uint64_t pc, LibraryEntry* entry);

// Writes every entry known so far into the profile that has just been opened; later entries are written as they are found.
void LibraryMapPublish();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_LIBRARY_MAP_H_
