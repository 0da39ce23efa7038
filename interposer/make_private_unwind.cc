// Build tool: makes libcadastre-unwind.so out of the distribution's libunwind-x86_64.so.
//
//   make_private_unwind /usr/lib/x86_64-linux-gnu/libunwind-x86_64.so.8 libcadastre-unwind.so
//
// Why a changed copy. The library is loaded into programs that know nothing of it. Under its own SONAME glibc would
// hand it to a program that asks for libunwind; through its dependencies liblzma.so.5 and libunwind.so.8 would be
// handed to it in the same way (and a program that brings its own liblzma would fail on a missing version). The static
// archive cannot be used: it is not compiled for shared objects. What is changed, all in place, in tables that the
// loader reads; no code:
//   1. SONAME, by a name of the same length;
//   2. DT_NEEDED of everything but libc and the loader becomes a second DT_NEEDED libc.so.6, and so do its version
//   needs;
//   3. functions of those libraries (reading compressed debug sections, resuming) become weak: never called by us;
//   4. version needs of libc newer than 2.17 become weak, for old containers;
//   5. sigprocmask becomes getpagesize (or getpid) and the pthread functions, weak anyway, are not found: libunwind's
//      lock around its memory pools would be four system calls per step. stack_unwind.cc lets one thread in at a time;
//   6. pipe2, pipe, mincore and msync become the same: libunwind prepares to read memory that may not be there, which
//      our accessors never ask it to do; the program would see two descriptors that are not its own, and be killed
//      where a service's allow list of system calls lacks mincore (systemd's @system-service);
//   7. its read-only segments become one with its code, and nothing is protected after relocation: three mappings less
//      in the start of every program.
// Errors: one line on stderr, status 1, no output file.
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr char kNewName[] = "libcadastre-unwind.so";

class Library {
 public:
  explicit Library(std::vector<char> bytes) : bytes_(std::move(bytes)) {}

  const char* Change() {
    auto* header = At<Elf64_Ehdr>(0);
    if (header == nullptr || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != EM_X86_64) {
      return "not an x86-64 ELF file";
    }
    if (!FindDynamic(*header)) return "no dynamic section, or an incomplete one";
    if (const char* error = ChangeNeeded()) return error;
    ChangeVersions();
    JoinSegments();
    return ChangeSymbols();
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  template <typename T>
  T* At(uint64_t offset) {
    return offset <= bytes_.size() && bytes_.size() - offset >= sizeof(T) ? reinterpret_cast<T*>(&bytes_[offset])
                                                                          : nullptr;
  }
  uint64_t FileOffset(uint64_t address) {
    auto* header = At<Elf64_Ehdr>(0);
    for (int i = 0; i < header->e_phnum; i++) {
      auto* segment = Segment(i);
      bool inside = segment != nullptr && segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
                    address < segment->p_vaddr + segment->p_filesz;
      if (inside) return address - segment->p_vaddr + segment->p_offset;
    }
    return bytes_.size();
  }
  bool FindDynamic(const Elf64_Ehdr& header) {
    for (int i = 0; i < header.e_phnum; i++) {
      auto* segment = Segment(i);
      if (segment == nullptr) return false;
      if (segment->p_type == PT_DYNAMIC) dynamic_ = segment->p_offset;
    }
    for (uint64_t at = dynamic_; dynamic_ != 0; at += sizeof(Elf64_Dyn)) {
      auto* entry = At<Elf64_Dyn>(at);
      if (entry == nullptr) return false;
      if (entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_STRTAB) strings_ = FileOffset(entry->d_un.d_ptr);
      if (entry->d_tag == DT_SYMTAB) symbols_ = FileOffset(entry->d_un.d_ptr);
      if (entry->d_tag == DT_VERSYM) versions_ = FileOffset(entry->d_un.d_ptr);
      if (entry->d_tag == DT_VERNEED) needs_ = FileOffset(entry->d_un.d_ptr);
      if (entry->d_tag == DT_VERNEEDNUM) need_count_ = entry->d_un.d_val;
    }
    return dynamic_ != 0 && strings_ > symbols_ && symbols_ != 0 && strings_ < bytes_.size();
  }
  std::string String(uint64_t offset) {
    std::string text;
    for (uint64_t at = strings_ + offset; at < bytes_.size() && bytes_[at] != 0; at++) text += bytes_[at];
    return text;
  }
  static bool IsKept(const std::string& library) { return library == "libc.so.6" || library.rfind("ld-linux", 0) == 0; }

  Elf64_Phdr* Segment(int index) {
    auto* header = At<Elf64_Ehdr>(0);
    return At<Elf64_Phdr>(header->e_phoff + static_cast<uint64_t>(index) * sizeof(Elf64_Phdr));
  }

  // The first segment comes to cover those behind it that are not writable and lie in memory as in the file.
  void JoinSegments() {
    Elf64_Phdr* first = nullptr;
    for (int i = 0; i < At<Elf64_Ehdr>(0)->e_phnum; i++) {
      Elf64_Phdr* segment = Segment(i);
      if (segment->p_type == PT_GNU_RELRO) segment->p_type = PT_NULL;
      if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W) != 0) continue;
      if (first == nullptr) {
        first = segment;
        continue;
      }
      if (segment->p_vaddr - first->p_vaddr != segment->p_offset - first->p_offset ||
          segment->p_memsz != segment->p_filesz)
        continue;
      first->p_filesz = first->p_memsz = segment->p_offset + segment->p_filesz - first->p_offset;
      first->p_flags |= segment->p_flags;
      segment->p_type = PT_NULL;
    }
  }

  const char* ChangeNeeded() {
    for (uint64_t at = dynamic_; At<Elf64_Dyn>(at)->d_tag != DT_NULL; at += sizeof(Elf64_Dyn)) {
      auto* entry = At<Elf64_Dyn>(at);
      if (entry->d_tag == DT_NEEDED && String(entry->d_un.d_val) == "libc.so.6") libc_ = entry->d_un.d_val;
    }
    if (libc_ == 0) return "does not need libc.so.6";
    bool renamed = false;
    for (uint64_t at = dynamic_; At<Elf64_Dyn>(at)->d_tag != DT_NULL; at += sizeof(Elf64_Dyn)) {
      auto* entry = At<Elf64_Dyn>(at);
      if (entry->d_tag == DT_NEEDED && !IsKept(String(entry->d_un.d_val))) entry->d_un.d_val = libc_;
      if (entry->d_tag != DT_SONAME) continue;
      if (String(entry->d_un.d_val).size() < strlen(kNewName)) return "its SONAME is shorter than ours";
      memcpy(&bytes_[strings_ + entry->d_un.d_val], kNewName, sizeof(kNewName));
      renamed = true;
    }
    return renamed ? nullptr : "has no SONAME";
  }

  void ChangeVersions() {
    uint64_t at = needs_;
    for (uint64_t i = 0; i < need_count_; i++) {
      auto* need = At<Elf64_Verneed>(at);
      if (need == nullptr) return;
      const bool kept = IsKept(String(need->vn_file));
      if (!kept) need->vn_file = static_cast<uint32_t>(libc_);
      uint64_t aux_at = at + need->vn_aux;
      for (int j = 0; j < need->vn_cnt; j++) {
        auto* version = At<Elf64_Vernaux>(aux_at);
        if (version == nullptr) return;
        unsigned major = 0, minor = 0;
        const bool is_glibc = sscanf(String(version->vna_name).c_str(), "GLIBC_%u.%u", &major, &minor) == 2;
        if (!kept || !is_glibc || minor > 17) version->vna_flags |= VER_FLG_WEAK;
        aux_at += version->vna_next;
      }
      at += need->vn_next;
    }
  }

  const char* ChangeSymbols() {
    // The symbol table ends where the strings begin: linkers lay them out in this order.
    const uint64_t count = (strings_ - symbols_) / sizeof(Elf64_Sym);
    uint64_t harmless = 0;  // takes nothing, changes nothing, returns something positive
    for (uint64_t i = 1; i < count; i++) {
      const std::string name = UndefinedName(i);
      if (name == "getpagesize" || (name == "getpid" && harmless == 0)) harmless = i;
    }
    if (harmless == 0) return "imports no function that can stand for pipe2";
    for (uint64_t i = 1; i < count; i++) {
      auto* symbol = At<Elf64_Sym>(symbols_ + i * sizeof(Elf64_Sym));
      if (symbol->st_shndx != SHN_UNDEF) continue;
      const std::string name = String(symbol->st_name);
      for (const char* unwanted : {"sigprocmask", "pipe2", "pipe", "mincore", "msync"}) {
        if (name == unwanted) Replace(i, harmless);
      }
      const bool is_pthread = name.rfind("pthread_", 0) == 0;
      const bool is_foreign = name.rfind("lzma_", 0) == 0 || name.rfind("_U", 0) == 0 ||
                              name.rfind("uncompress", 0) == 0 || name.rfind("inflate", 0) == 0 || name == "stat" ||
                              name == "fstat";  // of glibc 2.33: for debug files only
      if (!is_pthread && !is_foreign) continue;
      symbol->st_info = ELF64_ST_INFO(STB_WEAK, ELF64_ST_TYPE(symbol->st_info));
      if (is_pthread) memcpy(&bytes_[strings_ + symbol->st_name], "cadnone_", 8);  // a name that nobody defines
    }
    return nullptr;
  }

  std::string UndefinedName(uint64_t index) {
    auto* symbol = At<Elf64_Sym>(symbols_ + index * sizeof(Elf64_Sym));
    return symbol->st_shndx == SHN_UNDEF ? String(symbol->st_name) : "";
  }

  // The import gets another's name, with the version that this one is found under.
  void Replace(uint64_t index, uint64_t by) {
    At<Elf64_Sym>(symbols_ + index * sizeof(Elf64_Sym))->st_name =
        At<Elf64_Sym>(symbols_ + by * sizeof(Elf64_Sym))->st_name;
    auto* version = At<Elf64_Half>(versions_ + index * sizeof(Elf64_Half));
    auto* other = At<Elf64_Half>(versions_ + by * sizeof(Elf64_Half));
    if (versions_ != 0 && version != nullptr && other != nullptr) *version = *other;
  }

  std::vector<char> bytes_;
  uint64_t dynamic_ = 0, strings_ = 0, symbols_ = 0, versions_ = 0, needs_ = 0, need_count_ = 0, libc_ = 0;
};

int Fail(const char* path, const char* what) {
  fprintf(stderr, "make_private_unwind: %s: %s\n", path, what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return Fail("usage", "make_private_unwind LIBUNWIND OUT");
  std::ifstream in(argv[1], std::ios::binary);
  if (!in) return Fail(argv[1], "cannot be read");
  Library library(std::vector<char>((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()));
  if (const char* error = library.Change()) return Fail(argv[1], error);
  std::ofstream out(argv[2], std::ios::binary | std::ios::trunc);
  out.write(library.bytes().data(), static_cast<std::streamsize>(library.bytes().size()));
  out.close();
  return out ? 0 : Fail(argv[2], "cannot be written");
}
