#include "symbolizer/dwarf_lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "symbolizer/debug_files.h"

namespace cadastre {
namespace {

constexpr int kMaxDepth = 64;              // of scopes inside a function: damaged DWARF can nest without end
constexpr size_t kMaxFunctions = 1 << 20;  // of one unit

struct FunctionRange {
  Dwarf_Addr begin, end;
  Dwarf_Off die;
};

struct UnitRange {
  Dwarf_Addr begin, end;
  Dwarf_Off unit_die;
};

struct Unit {
  std::vector<FunctionRange> functions;  // sorted by begin
};

// Where scopes begin that can hold functions with code.
bool HoldsFunctions(int tag) {
  switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
      return true;
    default:
      return false;
  }
}

bool IsScope(int tag) { return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block; }

template <typename Visit>
void ForEachRange(Dwarf_Die* die, Visit visit) {
  Dwarf_Addr base, begin, end;
  for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &begin, &end)) > 0;) {
    if (begin < end) visit(begin, end);
  }
}

void IndexFunctions(Dwarf_Die* parent, int depth, Unit* unit) {
  Dwarf_Die child;
  if (depth > kMaxDepth || dwarf_child(parent, &child) != 0) return;
  do {
    int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram) {
      Dwarf_Off offset = dwarf_dieoffset(&child);
      ForEachRange(&child, [&](Dwarf_Addr begin, Dwarf_Addr end) {
        if (unit->functions.size() < kMaxFunctions) unit->functions.push_back({begin, end, offset});
      });
    } else if (HoldsFunctions(tag)) {
      IndexFunctions(&child, depth + 1, unit);
    }
  } while (dwarf_siblingof(&child, &child) == 0);
}

std::string StringOf(Dwarf_Die* die, unsigned attribute_name) {
  Dwarf_Attribute attribute;
  const char* text = dwarf_formstring(dwarf_attr_integrate(die, attribute_name, &attribute));
  return text == nullptr ? "" : text;
}

std::string LinkageName(Dwarf_Die* die) {
  std::string name = StringOf(die, DW_AT_linkage_name);
  return name.empty() ? StringOf(die, DW_AT_MIPS_linkage_name) : name;
}

// The die that stands where the function was declared: its parents are the namespaces and classes it belongs to.
Dwarf_Die DeclarationOf(Dwarf_Die die) {
  for (int i = 0; i < 8; i++) {
    Dwarf_Attribute attribute;
    Dwarf_Die next;
    Dwarf_Attribute* link = dwarf_attr(&die, DW_AT_abstract_origin, &attribute);
    if (link == nullptr) link = dwarf_attr(&die, DW_AT_specification, &attribute);
    if (link == nullptr || dwarf_formref_die(link, &next) == nullptr) break;
    die = next;
  }
  return die;
}

// "acme::billing::Index::add" from the scopes around a declaration: slow, for the few functions that have no linkage
// name.
std::string QualifiedName(Dwarf_Die* die) {
  std::string name = StringOf(die, DW_AT_name);
  Dwarf_Die declaration = DeclarationOf(*die);
  Dwarf_Die* scopes = nullptr;
  int count = dwarf_getscopes_die(&declaration, &scopes);
  for (int i = 1; i < count; i++) {
    int tag = dwarf_tag(&scopes[i]);
    if (!HoldsFunctions(tag)) continue;
    const char* scope = dwarf_diename(&scopes[i]);
    if (scope == nullptr && tag == DW_TAG_namespace) scope = "(anonymous namespace)";
    if (scope != nullptr) name = std::string(scope) + "::" + name;
  }
  if (count > 0) free(scopes);
  return name;
}

std::string CleanPath(const char* path) {
  if (path == nullptr) return "";
  std::string text = path;
  if (text.find("/.") == std::string::npos && text.find("//") == std::string::npos && text[0] != '.') return text;
  return std::filesystem::path(text).lexically_normal().string();
}

std::string FileOfIndex(Dwarf_Die* unit_die, Dwarf_Word index) {
  Dwarf_Files* files;
  size_t count;
  if (dwarf_getsrcfiles(unit_die, &files, &count) != 0 || index >= count) return "";
  return CleanPath(dwarf_filesrc(files, index, nullptr, nullptr));
}

Dwarf_Word NumberOf(Dwarf_Die* die, unsigned attribute_name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  dwarf_formudata(dwarf_attr(die, attribute_name, &attribute), &value);
  return value;
}

// Inlined calls around `address` in `scope`, outermost first.
void FindInlined(Dwarf_Die* scope, Dwarf_Addr address, int depth, std::vector<Dwarf_Die>* chain) {
  Dwarf_Die child;
  if (depth > kMaxDepth || dwarf_child(scope, &child) != 0) return;
  do {
    int tag = dwarf_tag(&child);
    bool inlined = tag == DW_TAG_inlined_subroutine;
    if (!inlined && !IsScope(tag)) continue;
    int has = dwarf_haspc(&child, address);
    // A block without ranges of its own may still hold inlined calls.
    if (has == 0 && (inlined || dwarf_hasattr(&child, DW_AT_low_pc) || dwarf_hasattr(&child, DW_AT_ranges))) continue;
    if (has < 0) continue;
    size_t before = chain->size();
    if (inlined) chain->push_back(child);
    FindInlined(&child, address, depth + 1, chain);
    if (inlined || chain->size() > before) return;
  } while (dwarf_siblingof(&child, &child) == 0);
}

}  // namespace

struct DwarfLines::State {
  Dwarf* dwarf = nullptr;
  std::unique_ptr<ElfFile> shared_file;
  Dwarf* shared = nullptr;
  bool is_complete = true;
  Dwarf_Aranges* aranges = nullptr;
  bool indexed_units = false;
  std::vector<UnitRange> unit_ranges;  // sorted by begin; only once .debug_aranges did not know
  absl::flat_hash_map<Dwarf_Off, std::unique_ptr<Unit>> units;

  ~State() {
    if (dwarf != nullptr) dwarf_end(dwarf);
    if (shared != nullptr) dwarf_end(shared);
  }
  void OpenShared(const ElfFile& file, const std::string& root);
  bool FindUnit(Dwarf_Addr address, Dwarf_Die* unit_die);
  void IndexUnits();
  Unit& IndexOf(Dwarf_Die* unit_die);
};

// dwz moves what several debug files have in common to one that each names, mostly relative to its own place.
void DwarfLines::State::OpenShared(const ElfFile& file, const std::string& root) {
  const char* name = nullptr;
  const void* id = nullptr;
  const ssize_t id_bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);
  if (id_bytes <= 0) return;
  const std::string build_id =
      absl::BytesToHexString(absl::string_view(static_cast<const char*>(id), static_cast<size_t>(id_bytes)));
  shared_file = ElfFile::Open(name[0] == '/' ? absl::StrCat(root, name)
                                             : absl::StrCat(file.path().substr(0, file.path().rfind('/') + 1), name));
  if (shared_file != nullptr && shared_file->build_id() != build_id) shared_file = nullptr;
  if (shared_file == nullptr) shared_file = FindDebugFileByBuildId(root, build_id);
  if (shared_file != nullptr) shared = dwarf_begin_elf(shared_file->elf(), DWARF_C_READ, nullptr);
  if (shared != nullptr) dwarf_setalt(dwarf, shared);
  is_complete = shared != nullptr;
}

// clang writes no .debug_aranges, and link-time optimisation may leave gaps in it: then every unit says itself what it
// covers.
void DwarfLines::State::IndexUnits() {
  indexed_units = true;
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die, split;
  uint8_t type;
  while (dwarf_get_units(dwarf, unit, &unit, nullptr, &type, &die, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    Dwarf_Off offset = dwarf_dieoffset(&die);
    ForEachRange(&die, [&](Dwarf_Addr begin, Dwarf_Addr end) { unit_ranges.push_back({begin, end, offset}); });
  }
  std::sort(unit_ranges.begin(), unit_ranges.end(),
            [](const UnitRange& a, const UnitRange& b) { return a.begin < b.begin; });
}

bool DwarfLines::State::FindUnit(Dwarf_Addr address, Dwarf_Die* unit_die) {
  Dwarf_Arange* arange = aranges == nullptr ? nullptr : dwarf_getarange_addr(aranges, address);
  Dwarf_Off offset;
  if (arange != nullptr && dwarf_getarangeinfo(arange, nullptr, nullptr, &offset) == 0 &&
      dwarf_offdie(dwarf, offset, unit_die) != nullptr) {
    return true;
  }
  if (!indexed_units) IndexUnits();
  auto at = std::upper_bound(unit_ranges.begin(), unit_ranges.end(), address,
                             [](Dwarf_Addr value, const UnitRange& range) { return value < range.begin; });
  if (at == unit_ranges.begin() || address >= (--at)->end) return false;
  return dwarf_offdie(dwarf, at->unit_die, unit_die) != nullptr;
}

Unit& DwarfLines::State::IndexOf(Dwarf_Die* unit_die) {
  std::unique_ptr<Unit>& unit = units[dwarf_dieoffset(unit_die)];
  if (unit == nullptr) {
    unit = std::make_unique<Unit>();
    IndexFunctions(unit_die, 0, unit.get());
    std::sort(unit->functions.begin(), unit->functions.end(),
              [](const FunctionRange& a, const FunctionRange& b) { return a.begin < b.begin; });
  }
  return *unit;
}

DwarfLines::DwarfLines() : state_(std::make_unique<State>()) {}
DwarfLines::~DwarfLines() = default;

std::unique_ptr<DwarfLines> DwarfLines::Open(const ElfFile& file, const std::string& root) {
  if (!file.HasSection(".debug_info") && !file.HasSection(".zdebug_info")) return nullptr;
  std::unique_ptr<DwarfLines> lines(new DwarfLines());
  lines->state_->dwarf = dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr);
  if (lines->state_->dwarf == nullptr) return nullptr;
  lines->state_->OpenShared(file, root);
  if (dwarf_getaranges(lines->state_->dwarf, &lines->state_->aranges, nullptr) != 0) lines->state_->aranges = nullptr;
  return lines;
}

bool DwarfLines::is_complete() const { return state_->is_complete; }

std::vector<SourceLevel> DwarfLines::Find(uint64_t address) {
  std::vector<SourceLevel> levels;
  Dwarf_Die unit_die;
  if (!state_->FindUnit(address, &unit_die)) return levels;
  SourceLevel level;  // the place in the innermost function; callers follow from the call sites
  if (Dwarf_Line* line = dwarf_getsrc_die(&unit_die, address); line != nullptr) {
    level.file = CleanPath(dwarf_linesrc(line, nullptr, nullptr));
    dwarf_lineno(line, &level.line);
  }
  const std::vector<FunctionRange>& functions = state_->IndexOf(&unit_die).functions;
  auto at = std::upper_bound(functions.begin(), functions.end(), address,
                             [](Dwarf_Addr value, const FunctionRange& range) { return value < range.begin; });
  Dwarf_Die function;
  if (at == functions.begin() || address >= (--at)->end || dwarf_offdie(state_->dwarf, at->die, &function) == nullptr) {
    if (!level.file.empty()) levels.push_back(std::move(level));
    return levels;
  }
  std::vector<Dwarf_Die> chain{function};
  FindInlined(&function, address, 0, &chain);
  for (auto die = chain.rbegin(); die != chain.rend(); ++die) {
    level.mangled = LinkageName(&*die);
    if (level.mangled.empty()) level.qualified = QualifiedName(&*die);
    levels.push_back(std::move(level));
    level = {};
    if (dwarf_tag(&*die) != DW_TAG_inlined_subroutine) break;
    level.file = FileOfIndex(&unit_die, NumberOf(&*die, DW_AT_call_file));
    level.line = static_cast<int>(NumberOf(&*die, DW_AT_call_line));
  }
  return levels;
}

}  // namespace cadastre
