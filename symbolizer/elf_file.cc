#include "symbolizer/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/escaping.h"

namespace cadastre {
namespace {

bool InitLibelf() {
  static const bool ready = elf_version(EV_CURRENT) != EV_NONE;
  return ready;
}

Elf_Scn* FindSection(Elf* elf, const std::string& name, GElf_Shdr* header) {
  size_t names;
  if (elf_getshdrstrndx(elf, &names) != 0) return nullptr;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    if (gelf_getshdr(section, header) == nullptr) continue;
    const char* own_name = elf_strptr(elf, names, header->sh_name);
    if (own_name != nullptr && name == own_name) return section;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<ElfFile> ElfFile::Open(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return nullptr;
  struct stat status;
  void* mapping = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
    mapping = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0);
  close(descriptor);
  if (mapping == MAP_FAILED) return nullptr;
  std::unique_ptr<ElfFile> file(new ElfFile());
  file->path_ = path;
  file->mapping_ = mapping;
  file->mapped_bytes_ = static_cast<size_t>(status.st_size);
  file->guard_ = std::make_unique<MappingGuard>(mapping, file->mapped_bytes_);
  return file->Begin(static_cast<char*>(mapping), file->mapped_bytes_) ? std::move(file) : nullptr;
}

std::unique_ptr<ElfFile> ElfFile::FromMemory(std::string bytes, const std::string& name) {
  std::unique_ptr<ElfFile> file(new ElfFile());
  file->path_ = name;
  file->bytes_ = std::move(bytes);
  return file->Begin(file->bytes_.data(), file->bytes_.size()) ? std::move(file) : nullptr;
}

bool ElfFile::Begin(char* bytes, size_t size) {
  if (!InitLibelf()) return false;
  elf_ = elf_memory(bytes, size);
  return elf_ != nullptr && elf_kind(elf_) == ELF_K_ELF;
}

ElfFile::~ElfFile() {
  if (elf_ != nullptr) elf_end(elf_);
  guard_ = nullptr;
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

std::string ElfFile::build_id() const {
  const void* bytes = nullptr;
  ssize_t length = dwelf_elf_gnu_build_id(elf_, &bytes);
  if (length <= 0 || bytes == nullptr) return "";
  absl::string_view id(static_cast<const char*>(bytes), length);
  if (std::all_of(id.begin(), id.end(), [](char c) { return c == 0; })) return "";
  return absl::BytesToHexString(id);
}

std::string ElfFile::soname() const {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf_, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNAMIC) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (data == nullptr || header.sh_entsize == 0) return "";
    for (size_t i = 0; i < data->d_size / header.sh_entsize; i++) {
      GElf_Dyn entry;
      if (gelf_getdyn(data, static_cast<int>(i), &entry) == nullptr || entry.d_tag == DT_NULL) return "";
      if (entry.d_tag != DT_SONAME) continue;
      const char* name = elf_strptr(elf_, header.sh_link, entry.d_un.d_val);
      return name == nullptr ? "" : name;
    }
  }
  return "";
}

std::vector<AddressRange> ElfFile::ExecutableRanges() const {
  std::vector<AddressRange> ranges;
  size_t count = 0;
  if (elf_getphdrnum(elf_, &count) != 0) return ranges;
  for (size_t i = 0; i < count; i++) {
    GElf_Phdr header;
    if (gelf_getphdr(elf_, static_cast<int>(i), &header) == nullptr) break;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0 && header.p_memsz <= UINT64_MAX - header.p_vaddr) {
      ranges.push_back({header.p_vaddr, header.p_vaddr + header.p_memsz});
    }
  }
  return ranges;
}

bool ElfFile::HasSection(const std::string& name) const {
  GElf_Shdr header;
  return FindSection(elf_, name, &header) != nullptr && header.sh_type != SHT_NOBITS && header.sh_size > 0;
}

std::string ElfFile::SectionBytes(const std::string& name, uint64_t max_bytes) const {
  GElf_Shdr header;
  Elf_Scn* section = FindSection(elf_, name, &header);
  if (section == nullptr || header.sh_type == SHT_NOBITS || header.sh_size > max_bytes) return "";
  Elf_Data* data = elf_rawdata(section, nullptr);
  if (data == nullptr || data->d_buf == nullptr) return "";
  return std::string(static_cast<const char*>(data->d_buf), data->d_size);
}

std::pair<std::string, uint32_t> ElfFile::DebugLink() const {
  GElf_Word crc = 0;
  const char* name = dwelf_elf_gnu_debuglink(elf_, &crc);
  // A name with a slash would lead out of the directories where debug files lie.
  if (name == nullptr || strchr(name, '/') != nullptr) return {"", 0};
  return {name, crc};
}

}  // namespace cadastre
