// One ELF file on disk or in memory, opened for reading: the little that symbol lookup wants to know of it.
//
// A file is mapped, so that of a debug file of gigabytes no more is read than is looked at; a MappingGuard stands by in
// case an upgrade cuts it meanwhile. Units: addresses are ELF virtual addresses (as in the file, without load bias).
// Errors: Open returns nullptr for what cannot be opened or is not ELF; getters return empty values for what is missing
// or damaged. Thread-safety: none (libelf keeps caches in its handle).
//
// Example:
//   std::unique_ptr<ElfFile> file = ElfFile::Open("/usr/lib/libfoo.so");
//   if (file != nullptr && file->build_id() == recorded) ...
#ifndef CADASTRE_SYMBOLIZER_ELF_FILE_H_
#define CADASTRE_SYMBOLIZER_ELF_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "symbolizer/mapping_guard.h"

struct Elf;

namespace cadastre {

struct AddressRange {
  uint64_t begin = 0, end = 0;
  bool Has(uint64_t address) const { return address >= begin && address < end; }
};

class ElfFile {
 public:
  static std::unique_ptr<ElfFile> Open(const std::string& path);
  // Owns `bytes`; for .gnu_debugdata.
  static std::unique_ptr<ElfFile> FromMemory(std::string bytes, const std::string& name);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  const std::string& path() const { return path_; }
  Elf* elf() const { return elf_; }  // for elf_symbols, elf_plt and dwarf_lines, which name libelf too

  std::string build_id() const;  // lower-case hex; empty = none or all zeros, which matches nothing
  std::string soname() const;
  std::vector<AddressRange> ExecutableRanges() const;
  bool HasSection(const std::string& name) const;  // with bytes in the file
  std::string SectionBytes(const std::string& name, uint64_t max_bytes) const;
  // File name and CRC of .gnu_debuglink; empty name = none.
  std::pair<std::string, uint32_t> DebugLink() const;

 private:
  ElfFile() = default;

  // Section headers are marked where a section was unpacked; in a file, on a page of our own.
  bool Begin(char* bytes, size_t size);

  std::string path_;
  std::string bytes_;        // of FromMemory
  void* mapping_ = nullptr;  // of Open
  size_t mapped_bytes_ = 0;
  std::unique_ptr<MappingGuard> guard_;
  Elf* elf_ = nullptr;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_ELF_FILE_H_
