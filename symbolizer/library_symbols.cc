#include "symbolizer/library_symbols.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbolizer/debug_files.h"
#include "symbolizer/demangle.h"
#include "symbolizer/library_names.h"

namespace cadastre {
namespace {

bool IsAllZeros(const std::string& hex) { return hex.find_first_not_of('0') == std::string::npos; }

// What a file is known by without reading it: size and the time of its last change. Not its inode, which differs
// between containers of one image.
std::string StampOf(const std::string& path) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return "none";
  return absl::StrCat(status.st_size, " bytes of ", status.st_mtim.tv_sec, ".", status.st_mtim.tv_nsec);
}

}  // namespace

LibrarySymbols::LibrarySymbols(const Library& library, const SymbolizerOptions& options, SymbolCache* cache)
    : options_(options),
      path_(WithoutDeleted(library.path)),
      build_id_(IsAllZeros(library.build_id) ? "" : library.build_id) {
  if (library.vdso || path_.empty() || path_[0] != '/') {
    has_read_tables_ = true;
    return;
  }
  OpenFile();
  if (std::optional<CachedNames> cached = cache->Load(build_id_, sources_)) {
    known_ = std::move(cached->names);
    own_soname_ = std::move(cached->soname);
    file_ = nullptr, debug_file_ = nullptr;
  }
}

void LibrarySymbols::OpenFile() {
  file_ = ElfFile::Open(absl::StrCat(options_.root, path_));
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
    debug_file_ = FindDebugFileByBuildId(options_.root, build_id_);
    if (debug_file_ == nullptr)
      problem_ = absl::StrCat(options_.root, path_, " ", why, ": its functions have no names");
  }
  has_read_tables_ = file_ == nullptr && debug_file_ == nullptr;  // there are none
  sources_ = has_read_tables_ || build_id_.empty() ? "" : Sources();
}

// What a name depends on. A debug file that was installed since, or a library that was stripped, is another text; so
// is another build of this program, which may spell names in another way.
std::string LibrarySymbols::Sources() const {
  std::string sources = absl::StrCat("program ", StampOf("/proc/self/exe"), options_.source_lines ? ", lines" : "",
                                     "; library ", file_ == nullptr ? "" : StampOf(file_->path()));
  for (const std::string& place : DebugFilePlaces(options_.root, path_, build_id_, file_.get()))
    absl::StrAppend(&sources, "; debug ", StampOf(place));
  return sources;
}

void LibrarySymbols::ReadTables() {
  if (file_ == nullptr && debug_file_ == nullptr) OpenFile();
  if (has_read_tables_) return;
  has_read_tables_ = true;
  if (file_ != nullptr) debug_file_ = FindDebugFile(options_.root, path_, *file_);
  const ElfFile& first = file_ != nullptr ? *file_ : *debug_file_;
  // .symtab holds all that .dynsym does; of two .symtabs the library's own is as good as the debug file's.
  uint64_t found = file_ == nullptr ? 0 : symbols_.AddTable(*file_, ElfSymbols::Table::kSymtab);
  if (found == 0 && debug_file_ != nullptr) found = symbols_.AddTable(*debug_file_, ElfSymbols::Table::kSymtab);
  if (found == 0 && file_ != nullptr) {
    symbols_.AddMiniDebugInfo(*file_);  // has only what .dynsym lacks
    symbols_.AddTable(*file_, ElfSymbols::Table::kDynsym);
  }
  symbols_.Sort(first.ExecutableRanges());
  if (file_ != nullptr) own_soname_ = file_->soname();
  file_path_ = file_ == nullptr ? "" : file_->path();
  if (options_.source_lines) {
    if (file_ != nullptr) dwarf_ = DwarfLines::Open(*file_, options_.root);
    bool own_dwarf = dwarf_ != nullptr;
    if (own_dwarf) debug_file_ = nullptr;
    if (!own_dwarf && debug_file_ != nullptr) dwarf_ = DwarfLines::Open(*debug_file_, options_.root);
    if (!own_dwarf) file_ = nullptr;
  }
  // The symbols are copied: nothing of the files is needed any more.
  if (dwarf_ == nullptr) file_ = nullptr, debug_file_ = nullptr;
  // The part that is not there may come, and its place is not among the sources.
  if (dwarf_ != nullptr && !dwarf_->is_complete()) sources_.clear();
}

std::vector<Frame> LibrarySymbols::Find(uint64_t address) {
  auto known = std::lower_bound(known_.begin(), known_.end(), address,
                                [](const NameOfAddress& name, uint64_t value) { return name.first < value; });
  if (known != known_.end() && known->first == address) return known->second;
  if (!has_read_tables_) ReadTables();
  std::vector<Frame> frames = Look(address);
  if (!sources_.empty()) found_.emplace_back(address, frames);
  return frames;
}

std::string LibrarySymbols::soname() const {
  const std::string_view name = FileNameOf(path_);
  return name.substr(0, own_soname_.size()) == own_soname_ ? "" : own_soname_;
}

bool LibrarySymbols::StoreNames(SymbolCache* cache) {
  if (found_.empty()) return false;
  // A return address and one that is exact may ask for the same place.
  auto before = [](const NameOfAddress& a, const NameOfAddress& b) { return a.first < b.first; };
  auto same = [](const NameOfAddress& a, const NameOfAddress& b) { return a.first == b.first; };
  std::sort(found_.begin(), found_.end(), before);
  found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
  cache->Store({.build_id = build_id_, .sources = sources_, .soname = own_soname_, .names = std::move(found_)});
  found_.clear();
  return true;
}

std::string LibrarySymbols::PltName(uint64_t address) {
  if (plt_ == nullptr) {
    std::unique_ptr<ElfFile> file = file_path_.empty() ? nullptr : ElfFile::Open(file_path_);
    plt_ = file == nullptr ? std::make_unique<ElfPlt>() : std::make_unique<ElfPlt>(*file);
  }
  return plt_->Find(address);
}

std::vector<Frame> LibrarySymbols::Look(uint64_t address) {
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
