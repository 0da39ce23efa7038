#include "interposer/unwind_image.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <initializer_list>

#include "interposer/elf_dynamic.h"
#include "interposer/elf_lookup.h"
#include "interposer/private_memory.h"
#include "interposer/profile_format.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {

constexpr uint64_t kPage = format::kPageBytes;
// Address space behind the file for what its writable segment has beyond it: libunwind 1.6 has 44 KiB.
constexpr uint64_t kBeyondFileBytes = 256 << 10;

uint64_t PageDown(uint64_t value) { return value & ~(kPage - 1); }
uint64_t PageUp(uint64_t value) { return PageDown(value + kPage - 1); }

bool IsInside(uint64_t begin, uint64_t bytes, uint64_t all) { return begin <= all && bytes <= all - begin; }

// What is bound to the image's imports.
long Refuse() { return -1; }
[[noreturn]] void Stop() { __builtin_trap(); }
int PageSize() { return static_cast<int>(kPage); }
int* PrivateErrno() {
  static int error;
  return &error;
}
// Of its thread-local variables, which belong to caches that are off.
void* ThreadLocal(void*) {
  static char none[64];
  return none;
}
void* Allocate(size_t bytes) { return IsSandboxed() ? nullptr : ReserveMemory<char>(PageUp(bytes)); }
void* AllocateZeros(size_t count, size_t bytes) { return Allocate(count * bytes); }  // its own sizes, both small
void* MapPages(void*, size_t bytes, int, int, int descriptor, off_t) {
  void* pages = descriptor == -1 ? Allocate(bytes) : nullptr;
  return pages != nullptr ? pages : MAP_FAILED;
}

template <typename Function>
uint64_t AddressOf(Function* function) {
  return reinterpret_cast<uint64_t>(function);
}

uint64_t Import(const char* name) {
  // No table: each line of one would be a relocation in the start of every program.
  const auto is = [name](const char* wanted) { return strcmp(name, wanted) == 0; };
  if (is("memcpy")) return AddressOf(&memcpy);
  if (is("memmove")) return AddressOf(&memmove);
  if (is("memset")) return AddressOf(&memset);
  if (is("strlen")) return AddressOf(&strlen);
  if (is("strcmp")) return AddressOf(&strcmp);
  if (is("malloc")) return AddressOf(&Allocate);
  if (is("calloc")) return AddressOf(&AllocateZeros);
  if (is("mmap")) return AddressOf(&MapPages);
  if (is("getpagesize") || is("sysconf")) return AddressOf(&PageSize);  // it asks for nothing else
  if (is("__errno_location")) return AddressOf(&PrivateErrno);
  if (is("__tls_get_addr")) return AddressOf(&ThreadLocal);
  if (is("abort")) return AddressOf(&Stop);
  return AddressOf(&Refuse);
}

// False: a symbol of a kind that cannot be bound.
bool Bind(const DynamicTables& tables, uint32_t index, uint64_t* address) {
  const Elf64_Sym& symbol = tables.symbols[index];
  if (symbol.st_shndx != SHN_UNDEF) {
    *address = tables.bias + symbol.st_value;
    return ELF64_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC;
  }
  const bool is_weak =
      ELF64_ST_BIND(symbol.st_info) == STB_WEAK;  // the pthread functions: without them it has no locks
  *address = is_weak ? 0 : Import(tables.strings + symbol.st_name);
  return true;
}

bool ApplyRelocation(const DynamicTables& tables, const Elf64_Rela& relocation) {
  auto* slot = reinterpret_cast<uint64_t*>(tables.bias + relocation.r_offset);
  const auto addend = static_cast<uint64_t>(relocation.r_addend);
  uint64_t address = 0;
  switch (ELF64_R_TYPE(relocation.r_info)) {
    case R_X86_64_RELATIVE:
      *slot = tables.bias + addend;
      return true;
    case R_X86_64_GLOB_DAT:
    case R_X86_64_JUMP_SLOT:
    case R_X86_64_64:
      if (!Bind(tables, static_cast<uint32_t>(ELF64_R_SYM(relocation.r_info)), &address)) return false;
      *slot = address + addend;
      return true;
    case R_X86_64_DTPMOD64:
    case R_X86_64_DTPOFF64:
      return true;  // for ThreadLocal, which does not look at it
    default:
      return false;
  }
}

}  // namespace

bool UnwindImage::Map(const char* path) {
  const long fd = RawSyscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (IsSyscallError(fd)) return false;
  struct stat file {};
  long mapped = RawSyscall(SYS_fstat, fd, reinterpret_cast<long>(&file));
  if (mapped == 0 && file.st_size >= static_cast<off_t>(kPage)) {
    file_bytes_ = static_cast<uint64_t>(file.st_size);
    mapped_bytes_ = PageUp(file_bytes_) + kBeyondFileBytes;
    mapped = RawSyscall(SYS_mmap, 0, static_cast<long>(mapped_bytes_), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    if (!IsSyscallError(mapped)) start_ = static_cast<uint64_t>(mapped);
  }
  RawSyscall(SYS_close, fd);
  return start_ != 0;
}

// Everything else lies in memory as it does in the file. Made elsewhere and then moved over what is mapped there: the
// file's own bytes may lie below.
bool UnwindImage::PlaceWritable() {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(start_);
  const bool is_library = memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_machine == EM_X86_64 &&
                          header->e_type == ET_DYN && header->e_phentsize == sizeof(Elf64_Phdr) &&
                          IsInside(header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr), kPage);
  if (!is_library) return false;
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(start_ + header->e_phoff);
  const Elf64_Phdr* writable = nullptr;
  uint64_t others_end = 0;
  for (uint32_t i = 0; i < header->e_phnum; i++) {
    const Elf64_Phdr& segment = segments[i];
    if (segment.p_type != PT_LOAD) continue;
    if (!IsInside(segment.p_offset, segment.p_filesz, file_bytes_) || segment.p_filesz > segment.p_memsz ||
        !IsInside(segment.p_vaddr, segment.p_memsz, mapped_bytes_)) {
      return false;
    }
    if ((segment.p_flags & PF_W) != 0) {
      if (writable != nullptr) return false;
      writable = &segment;
    } else {
      if (segment.p_vaddr != segment.p_offset || segment.p_filesz != segment.p_memsz) return false;
      others_end = segment.p_vaddr + segment.p_memsz;
    }
  }
  if (writable == nullptr || PageDown(writable->p_vaddr) < others_end) return false;
  writable_start_ = start_ + PageDown(writable->p_vaddr);
  writable_end_ = start_ + PageUp(writable->p_vaddr + writable->p_memsz);
  const uint64_t bytes = writable_end_ - writable_start_;
  const long made =
      RawSyscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (IsSyscallError(made)) return false;
  memcpy(reinterpret_cast<char*>(made) + (start_ + writable->p_vaddr - writable_start_),
         reinterpret_cast<const char*>(start_ + writable->p_offset), writable->p_filesz);
  const long moved = RawSyscall(SYS_mremap, made, static_cast<long>(bytes), static_cast<long>(bytes),
                                MREMAP_MAYMOVE | MREMAP_FIXED, static_cast<long>(writable_start_));
  if (IsSyscallError(moved)) return false;
  NoteOwnMemory(writable_start_, bytes);
  return true;
}

bool UnwindImage::Relocate() {
  const DynamicTables tables = ReadImage(start_);
  if (tables.symbols == nullptr || tables.strings == nullptr) return false;
  for (const Relocations& list : {tables.data, tables.calls}) {
    for (uint64_t i = 0; i < list.bytes / sizeof(Elf64_Rela); i++) {
      const uint64_t slot = start_ + list.first[i].r_offset;
      if (slot < writable_start_ || slot > writable_end_ - sizeof(uint64_t)) return false;
      if (!ApplyRelocation(tables, list.first[i])) return false;
    }
  }
  return true;
}

bool UnwindImage::Prepare() {
  if (is_prepared_) return true;
  if (start_ == 0 || IsSandboxed()) return false;
  is_prepared_ = PlaceWritable() && Relocate();
  if (!is_prepared_) start_ = 0;  // not tried again
  return is_prepared_;
}

void* UnwindImage::Find(const char* name) const { return is_prepared_ ? FindInImage(start_, name) : nullptr; }

}  // namespace cadastre
