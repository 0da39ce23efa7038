#include "symbolizer/library_symbols.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/debug_files.h"
#include "symbolizer/demangle.h"
#include "symbolizer/library_names.h"

namespace cadastre {
namespace {

bool IsAllZeros(const std::string& hex) { return hex.find_first_not_of('0') == std::string::npos; }

}  // namespace

LibrarySymbols::LibrarySymbols(const Library& library, const SymbolizerOptions& options)
    : path_(WithoutDeleted(library.path)), build_id_(IsAllZeros(library.build_id) ? "" : library.build_id) {
  if (library.vdso || path_.empty() || path_[0] != '/') return;
  file_ = ElfFile::Open(absl::StrCat(options.root, path_));
  std::string why = "cannot be read";
  if (file_ != nullptr) {
    // What was loaded is known by its build id. Another id, or an id where there was none, is other code: its names
    // would be wrong.
    if (std::string own_id = file_->build_id(); own_id != build_id_) {
      why = absl::StrCat("is not the file that was recorded (build id ", own_id.empty() ? "none" : own_id,
                         ", recorded ", build_id_.empty() ? "none" : build_id_, ")");
      file_ = nullptr;
    }
  }
  if (file_ == nullptr) {
    debug_file_ = FindDebugFileByBuildId(options.root, build_id_);
    if (debug_file_ == nullptr) problem_ = absl::StrCat(options.root, path_, " ", why, ": its functions have no names");
  } else {
    debug_file_ = FindDebugFile(options.root, path_, *file_);
  }
  if (file_ != nullptr || debug_file_ != nullptr) ReadTables(options);
}

void LibrarySymbols::ReadTables(const SymbolizerOptions& options) {
  const ElfFile& first = file_ != nullptr ? *file_ : *debug_file_;
  // .symtab holds all that .dynsym does; of two .symtabs the library's own is as good as the debug file's.
  uint64_t found = file_ == nullptr ? 0 : symbols_.AddTable(*file_, ElfSymbols::Table::kSymtab);
  if (found == 0 && debug_file_ != nullptr) found = symbols_.AddTable(*debug_file_, ElfSymbols::Table::kSymtab);
  if (found == 0 && file_ != nullptr) {
    symbols_.AddMiniDebugInfo(*file_);  // has only what .dynsym lacks
    symbols_.AddTable(*file_, ElfSymbols::Table::kDynsym);
  }
  symbols_.Sort(first.ExecutableRanges());
  if (file_ != nullptr) {
    soname_ = file_->soname();
    std::string_view name = FileNameOf(path_);
    if (name.substr(0, soname_.size()) == soname_) soname_.clear();
  }
  file_path_ = file_ == nullptr ? "" : file_->path();
  if (options.source_lines) {
    if (file_ != nullptr) dwarf_ = DwarfLines::Open(*file_);
    bool own_dwarf = dwarf_ != nullptr;
    if (own_dwarf) debug_file_ = nullptr;
    if (!own_dwarf && debug_file_ != nullptr) dwarf_ = DwarfLines::Open(*debug_file_);
    if (!own_dwarf) file_ = nullptr;
  }
  // What is read is copied: a process with a thousand libraries must not cost us a thousand descriptors.
  if (dwarf_ == nullptr) file_ = nullptr, debug_file_ = nullptr;
}

std::string LibrarySymbols::PltName(uint64_t address) {
  if (plt_ == nullptr) {
    std::unique_ptr<ElfFile> file = file_path_.empty() ? nullptr : ElfFile::Open(file_path_);
    plt_ = file == nullptr ? std::make_unique<ElfPlt>() : std::make_unique<ElfPlt>(*file);
  }
  return plt_->Find(address);
}

std::vector<Frame> LibrarySymbols::Find(uint64_t address) {
  std::vector<Frame> frames;
  SymbolHit hit = symbols_.Find(address);
  std::vector<SourceLevel> levels;
  if (dwarf_ != nullptr) levels = dwarf_->Find(address);
  for (size_t i = 0; i < levels.size(); i++) {
    const SourceLevel& level = levels[i];
    Frame frame;
    frame.file = level.file;
    frame.line = level.line;
    frame.inlined = i + 1 < levels.size();
    // The function that has the code is named by the linker's symbol: it is what everybody else shows, and it is always
    // there in C.
    if (!frame.inlined && hit.found) {
      frame.function = Demangle(hit.mangled);
    } else {
      frame.function = level.mangled.empty() ? level.qualified : Demangle(level.mangled);
    }
    frame.resolved = !frame.function.empty();
    frames.push_back(std::move(frame));
  }
  if (frames.empty() && (hit.found)) {
    Frame frame;
    frame.function = Demangle(hit.mangled);
    frame.resolved = true;
    frames.push_back(std::move(frame));
  }
  if (frames.empty()) {
    if (std::string name = PltName(address); !name.empty()) {
      Frame frame;
      frame.function = std::move(name);
      frame.resolved = true;
      frames.push_back(std::move(frame));
    }
  }
  return frames;
}

}  // namespace cadastre
