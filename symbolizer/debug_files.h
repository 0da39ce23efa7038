// Where the names of a stripped library may lie: build-id directories and .gnu_debuglink.
//
// Searched, in this order, all under `root`: /usr/lib/debug/.build-id/ab/cdef.debug; then the name in .gnu_debuglink
// beside the library, in .debug/ beside it, and under /usr/lib/debug + its directory. A file found by build id must
// have that id. So must one found by debuglink; only where it or the library has none does the CRC decide that the link
// states, as that takes reading all of the file. Errors: none; nullptr where there is no file that fits.
// Thread-safety: reads files; no shared state.
//
// Example: std::unique_ptr<ElfFile> debug = FindDebugFile("", "/usr/lib/libfoo.so", *library);
#ifndef CADASTRE_SYMBOLIZER_DEBUG_FILES_H_
#define CADASTRE_SYMBOLIZER_DEBUG_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "symbolizer/elf_file.h"

namespace cadastre {

// `path` is the library's path as the target saw it (without root).
std::unique_ptr<ElfFile> FindDebugFile(const std::string& root, const std::string& path, const ElfFile& library);

// By build id alone, for when the library itself is gone.
std::unique_ptr<ElfFile> FindDebugFileByBuildId(const std::string& root, const std::string& build_id);

// Everywhere that FindDebugFile looks, whether there is a file or not; without a library, where
// FindDebugFileByBuildId does.
std::vector<std::string> DebugFilePlaces(const std::string& root, const std::string& path, const std::string& build_id,
                                         const ElfFile* library);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_DEBUG_FILES_H_
