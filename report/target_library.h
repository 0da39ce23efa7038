// A library that another process has loaded, read from that process's memory: neither its file nor a file system of its
// own is needed.
//
// Everything is checked before it is believed: the bytes may be another file's. Units: absolute addresses of the
// target. Errors: empty results. Thread-safety: reads files.
//
// Example: uint64_t variable = LoadedLibrary(memory, area.start).Find("environ");
#ifndef CADASTRE_REPORT_TARGET_LIBRARY_H_
#define CADASTRE_REPORT_TARGET_LIBRARY_H_

#include <cstdint>
#include <vector>

#include "report/target_memory.h"

namespace cadastre {

class LoadedLibrary {
 public:
  // `start`: where the file's first page is mapped.
  LoadedLibrary(const TargetMemory& memory, uint64_t start);

  // Where its last segment ends in memory, zero-initialised data included; 0 = there is no library at `start`.
  uint64_t end() const { return end_; }

  // The address of a symbol that it exports; 0 = it defines no such symbol.
  uint64_t Find(const char* name) const;

 private:
  struct Tables {
    uint64_t symbols = 0, strings = 0, hash = 0;
  };
  Tables ReadDynamic() const;

  const TargetMemory& memory_;
  uint64_t bias_ = 0, end_ = 0, dynamic_ = 0;
};

// The ranges of all libraries and of the executable, from their program headers.
std::vector<KnownRange> FindLibraries(const TargetMemory& memory, const std::vector<MemoryArea>& areas);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_TARGET_LIBRARY_H_
