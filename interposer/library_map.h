// Which ELF file a pc lies in, without the loader's lock.
//
// A private, append-only table of loaded libraries: filled in the constructor by dl_iterate_phdr, later by
// _dl_find_object (glibc 2.35, looked up by name, lock-free) when a hook meets a pc that no entry covers. An entry is
// retired when its library has gone; its index keeps its meaning for ever, and is used again only for the same file at
// the same addresses.
//
// A library that was there at start-up cannot go away (permanent). Any other may: through dlclose, which we wrap, and
// through the loader's own unloading (iconv modules), which nobody can wrap. So what is remembered about a pc of such a
// library counts only after IsLibraryStillLoaded has asked the loader, once per library and capture. Without
// _dl_find_object (glibc < 2.35) that answers from the dlclose wrapper alone, and libraries opened later are known from
// the next dlclose on.
//
// Thread- and signal-safety: LookupLibrary and IsLibraryStillLoaded are lock-free and safe in hooks. Init, Before- and
// AfterDlclose run outside hooks and may take the loader's lock. Errors: a full table (kMaxLibraries) makes
// further libraries unknown; counted in the profile (libraries_full).
//
// Example:
//   LibraryEntry library;
//   if (LookupLibrary(pc - 1, &library)) frame = MakeLibraryFrame(kFrameReturn, library.index, pc - library.bias);
#ifndef CADASTRE_INTERPOSER_LIBRARY_MAP_H_
#define CADASTRE_INTERPOSER_LIBRARY_MAP_H_

#include <stdint.h>

namespace cadastre {

inline constexpr uint32_t kMaxLibraries = 4096;

struct LibraryEntry {
  uint32_t index;  // in the profile's libraries region; 0 = none
  uint32_t flags;  // format::LibraryFlags
  bool permanent;  // was there at start-up: never unloaded
  uint64_t bias;   // l_addr
  uint64_t start, end;
  const uint8_t* eh_frame_hdr;  // in memory; nullptr = no unwind tables
  uint64_t eh_frame_hdr_bytes;
  // The loaded segment that holds eh_frame_hdr: unwind tables are read inside it and nowhere else.
  uint64_t tables_start, tables_end;
};

// executable_path: what the executable is recorded as, whose own name for itself the loader leaves empty; "" = not
// known. It is kept, not copied.
void LibraryMapInit(const char* executable_path);
void LibraryMapBeforeDlclose();   // from here to AfterDlclose nothing remembered about libraries that can go is trusted
                                  // (old glibc)
void LibraryMapAfterDlclose();    // retire what is gone
uint32_t LibraryMapGeneration();  // changes whenever a library was found to be gone

// False if no known library covers pc. confirmed: an index of which the loader has just said that it is there, and need
// not be asked again; 0 = none.
bool LookupLibrary(uint64_t pc, LibraryEntry* entry, uint32_t confirmed = 0);

// For an index that is not permanent: is that library still what covers pc?
bool IsLibraryStillLoaded(uint32_t index, uint64_t pc);

// As the loader names it, NUL-terminated; "" if not known. Outside hooks.
const char* LibraryPath(uint32_t index);

// Writes every entry known so far into the profile that has just been opened; later entries are written as they are
// found.
void LibraryMapPublish();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_LIBRARY_MAP_H_
