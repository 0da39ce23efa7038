#include "report/executable_facts.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/function_name.h"
#include "report/output_file.h"

namespace cadastre {
namespace {

constexpr int kMaxScripts = 4;  // the kernel's own limit (BINPRM_MAX_RECURSION)
constexpr uint64_t kMaxTableBytes = 64 << 20;

// Reads parts of a file; what does not lie in it reads as nothing.
class File {
 public:
  explicit File(const std::string& path) : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(const File&) = delete;
  bool ok() const { return descriptor_ >= 0; }
  std::string Read(uint64_t offset, uint64_t bytes) const {
    if (bytes > kMaxTableBytes || offset > INT64_MAX) return "";
    std::string text(bytes, '\0');
    ssize_t got = pread(descriptor_, text.data(), bytes, static_cast<off_t>(offset));
    text.resize(got > 0 ? got : 0);
    return text;
  }
  template <typename Record>
  bool Get(uint64_t offset, Record* record) const {
    std::string bytes = Read(offset, sizeof(Record));
    if (bytes.size() != sizeof(Record)) return false;
    memcpy(record, bytes.data(), sizeof(Record));
    return true;
  }

 private:
  int descriptor_;
};

// The names under which allocators are linked into programs that keep libc's malloc as well: Rust's jemalloc, Redis's,
// mimalloc without override, tcmalloc.
constexpr const char* kPrivateNames[] = {"_rjem_malloc", "je_malloc", "mi_malloc", "tc_malloc"};

// Functions that only a sanitizer's runtime has, which an instrumented program calls first.
constexpr struct {
  const char* function;
  const char* name;
} kSanitizers[] = {{"__asan_init", "AddressSanitizer"},
                   {"__tsan_init", "ThreadSanitizer"},
                   {"__msan_init", "MemorySanitizer"},
                   {"__hwasan_init", "HWAddressSanitizer"}};

void NoteSanitizer(const char* name, bool is_inside, ExecutableFacts* facts) {
  for (const auto& sanitizer : kSanitizers) {
    if (strcmp(name, sanitizer.function) != 0) continue;
    facts->sanitizer = sanitizer.name;
    facts->sanitizer_refuses_preload = !is_inside && facts->sanitizer == "AddressSanitizer";
  }
}

// .dynsym says what others see, .symtab (where it was kept) what is inside.
void FindAllocators(const File& file, const Elf64_Ehdr& header, ExecutableFacts* facts) {
  for (int i = 0; i < header.e_shnum; i++) {
    Elf64_Shdr section, names;
    if (!file.Get(header.e_shoff + static_cast<uint64_t>(i) * sizeof(Elf64_Shdr), &section)) return;
    const bool is_table = section.sh_type == SHT_DYNSYM || section.sh_type == SHT_SYMTAB;
    if (!is_table || section.sh_link >= header.e_shnum) continue;
    if (!file.Get(header.e_shoff + static_cast<uint64_t>(section.sh_link) * sizeof(Elf64_Shdr), &names)) return;
    std::string symbols = file.Read(section.sh_offset, section.sh_size),
                strings = file.Read(names.sh_offset, names.sh_size);
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      memcpy(&symbol, symbols.data() + at, sizeof(symbol));
      if (symbol.st_name >= strings.size()) continue;
      const char* name = strings.c_str() + symbol.st_name;
      if (section.sh_type == SHT_DYNSYM) NoteSanitizer(name, symbol.st_shndx != SHN_UNDEF, facts);
      if (symbol.st_shndx == SHN_UNDEF) continue;
      if (section.sh_type == SHT_DYNSYM && strcmp(name, "malloc") == 0) facts->defines_malloc = true;
      for (const char* known : kPrivateNames) {
        if (strcmp(name, known) == 0) facts->private_allocator = known;
      }
    }
  }
}

void InspectElf(const File& file, ExecutableFacts* facts) {
  Elf64_Ehdr header;
  if (!file.Get(0, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  facts->elf = true;
  facts->x86_64 = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64;
  if (!facts->x86_64) return;
  for (int i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    if (!file.Get(header.e_phoff + static_cast<uint64_t>(i) * sizeof(Elf64_Phdr), &segment)) break;
    if (segment.p_type == PT_INTERP && segment.p_filesz < 4096) {
      std::string loader = file.Read(segment.p_offset, segment.p_filesz);
      facts->loader = loader.c_str();  // without its NUL
    }
  }
  facts->musl = absl::StrContains(facts->loader, "ld-musl");
  FindAllocators(file, header, facts);
}

}  // namespace

absl::StatusOr<std::string> FindInPath(const std::string& command) {
  if (absl::StrContains(command, "/")) {
    if (access(command.c_str(), X_OK) != 0) return ErrnoStatus(errno, "cannot run", command);
    return command;
  }
  const char* path = getenv("PATH");
  for (absl::string_view directory : absl::StrSplit(path == nullptr ? "/bin:/usr/bin" : path, ':')) {
    std::string candidate = absl::StrCat(directory.empty() ? "." : directory, "/", command);
    struct stat status;
    if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      return candidate;
  }
  return absl::NotFoundError(absl::StrCat("cannot run ", command, ": not found in PATH"));
}

absl::StatusOr<ExecutableFacts> InspectExecutable(const std::string& command) {
  absl::StatusOr<std::string> path = FindInPath(command);
  if (!path.ok()) return path.status();
  ExecutableFacts facts;
  facts.path = *path;
  for (int level = 0; level <= kMaxScripts; level++) {
    struct stat status;
    if (stat(facts.path.c_str(), &status) != 0) return ErrnoStatus(errno, "cannot run", facts.path);
    if (S_ISDIR(status.st_mode)) return ErrnoStatus(EACCES, "cannot run", facts.path);
    File file(facts.path);
    if (!file.ok()) return ErrnoStatus(errno, "cannot read", facts.path);
    std::string start = file.Read(0, 256);
    absl::string_view line = absl::string_view(start).substr(0, start.find('\n'));
    if (!absl::ConsumePrefix(&line, "#!")) {
      bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != geteuid();
      bool changes_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != getegid();
      bool capabilities = getxattr(facts.path.c_str(), "security.capability", nullptr, 0) > 0 && geteuid() != 0;
      facts.setuid = changes_user || changes_group || capabilities;
      InspectElf(file, &facts);
      break;
    }
    facts.scripts.push_back(facts.path);
    std::vector<std::string> words =
        absl::StrSplit(absl::StripAsciiWhitespace(line), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.empty()) break;
    facts.path = words[0];
    // "#!/usr/bin/env python3": env itself runs for a moment only.
    if (FileName(words[0]) == "env" && words.size() > 1 && words[1][0] != '-') {
      absl::StatusOr<std::string> named = FindInPath(words[1]);
      if (named.ok()) facts.path = *named;
    }
  }
  return facts;
}

std::string AllocatorInside(const std::string& library_path) {
  ExecutableFacts facts;
  File file(library_path);
  if (file.ok()) InspectElf(file, &facts);
  return facts.defines_malloc ? "malloc" : facts.private_allocator;
}

std::string WhyNotPreloaded(const ExecutableFacts& facts) {
  if (!facts.elf) return absl::StrCat(facts.path, " is not an ELF executable");
  if (!facts.x86_64) return absl::StrCat(facts.path, " is not an x86-64 executable");
  if (facts.loader.empty())
    return absl::StrCat(facts.path, " is linked statically: no loader, so nothing can be preloaded");
  if (facts.musl) return absl::StrCat(facts.path, " uses musl libc (", facts.loader, "); Cadastre needs glibc");
  if (facts.setuid)
    return absl::StrCat(facts.path, " is setuid, setgid or has file capabilities: the loader ignores LD_PRELOAD");
  if (!facts.sanitizer.empty()) {
    return absl::StrCat(
        facts.path, " is built with ", facts.sanitizer, ", whose runtime serves malloc: nothing is recorded",
        facts.sanitizer_refuses_preload ? "; it also refuses to run with a preloaded library, unless ASAN_OPTIONS says"
                                          " verify_asan_link_order=0"
                                        : "");
  }
  if (facts.defines_malloc)
    return absl::StrCat(facts.path, " defines malloc itself, before Cadastre: its calls are not seen");
  return "";
}

}  // namespace cadastre
