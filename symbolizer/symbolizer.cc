#include "symbolizer/symbolizer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "interposer/profile_format.h"
#include "symbolizer/jit_symbols.h"
#include "symbolizer/library_names.h"
#include "symbolizer/library_symbols.h"
#include "symbolizer/symbol_cache.h"

namespace cadastre {
namespace {

Frame Unresolved(std::string function) {
  Frame frame;
  frame.function = std::move(function);
  return frame;
}

}  // namespace

struct Symbolizer::State {
  State(const Profile& p, SymbolizerOptions o) : profile(&p), options(std::move(o)), cache(options.cache) {}

  const Profile* profile;
  SymbolizerOptions options;
  SymbolCache cache;
  // Values on the heap: references must stay valid while the table grows.
  absl::flat_hash_map<uint64_t, std::unique_ptr<std::vector<Frame>>> resolved;
  absl::flat_hash_map<uint64_t, const std::vector<Frame>*> stored;
  absl::flat_hash_map<uint32_t, const std::string*> java_names;
  absl::flat_hash_map<uint64_t, std::unique_ptr<LibrarySymbols>> libraries;
  // One file that was loaded twice, or by dlopen again and again, is read once.
  absl::flat_hash_map<std::pair<std::string, std::string>, uint64_t> library_of_file;
  std::optional<JitSymbols> jit;  // read when the first frame asks for it
  uint64_t unresolved = 0;
  std::vector<std::string> warnings;

  LibrarySymbols& SymbolsOf(uint64_t index);
  std::vector<Frame> FromLibrary(uint64_t raw);
  std::vector<Frame> FromGeneratedCode(uint64_t raw);
  std::vector<Frame> Name(uint64_t raw);
};

Symbolizer::Symbolizer(const Profile& profile, SymbolizerOptions options)
    : state_(std::make_unique<State>(profile, std::move(options))) {
  std::string& root = state_->options.root;
  while (!root.empty() && root.back() == '/') root.pop_back();
  for (const auto& [raw, frames] : profile.stored_symbols) state_->stored[raw] = &frames;
  for (const auto& [index, name] : profile.java_names) state_->java_names[index] = &name;
}

Symbolizer::~Symbolizer() { StoreNames(); }

void Symbolizer::StoreNames() {
  bool any = false;
  for (auto& [index, symbols] : state_->libraries) any |= symbols->StoreNames(&state_->cache);
  if (any) state_->cache.Trim();
}

LibrarySymbols& Symbolizer::State::SymbolsOf(uint64_t index) {
  const Library& library = profile->libraries[index];
  auto [same, is_new] = library_of_file.try_emplace({library.path, library.build_id}, index);
  std::unique_ptr<LibrarySymbols>& symbols = libraries[same->second];
  if (symbols == nullptr) {
    symbols = std::make_unique<LibrarySymbols>(library, options, &cache);
    if (!symbols->problem().empty()) warnings.push_back(symbols->problem());
  }
  return *symbols;
}

std::vector<Frame> Symbolizer::State::FromLibrary(uint64_t raw) {
  uint64_t index = format::FrameLibraryOf(raw);
  uint64_t address = format::FrameAddressOf(raw);
  if (index == 0 || index >= profile->libraries.size())
    return {Unresolved(absl::StrFormat("[library %d]+0x%x", index, address))};
  const Library& library = profile->libraries[index];
  // The return address may be the first byte of the next function, after a call that never returns.
  uint64_t look_up = format::FrameTagOf(raw) == format::kFrameReturn && address > 0 ? address - 1 : address;
  LibrarySymbols& symbols = SymbolsOf(index);
  std::vector<Frame> frames = symbols.Find(look_up);
  std::string name = library.vdso           ? "[vdso]"
                     : library.path.empty() ? "[unknown]"
                                            : std::string(FileNameOf(WithoutDeleted(library.path)));
  if (frames.empty()) frames.push_back(Unresolved(""));
  for (Frame& frame : frames) {
    if (!frame.resolved) frame.function = absl::StrFormat("%s+0x%x", name, address);
    frame.library = library.vdso ? "[vdso]" : library.path;
    frame.soname = symbols.soname();
  }
  return frames;
}

// Code in no library: a compiler in the process made it, and may have left names for perf.
std::vector<Frame> Symbolizer::State::FromGeneratedCode(uint64_t raw) {
  const uint64_t pc = raw & format::kFramePayloadMask;
  if (!jit.has_value()) {
    struct stat facts {};
    const uid_t owner = stat(profile->path.c_str(), &facts) == 0 ? facts.st_uid : geteuid();
    jit = JitSymbols::Read(absl::StrCat(options.root, "/tmp/perf-", profile->pid, ".map"), profile->start_realtime_ns,
                           owner);
  }
  const bool is_return = format::FrameTagOf(raw) == format::kFrameUnknown;
  const std::string* name = jit->Find(is_return && pc > 0 ? pc - 1 : pc);
  if (name == nullptr) return {Unresolved(absl::StrFormat("0x%x", pc))};
  Frame frame;
  frame.function = *name;
  frame.resolved = true;
  return {frame};
}

std::vector<Frame> Symbolizer::State::Name(uint64_t raw) {
  if (auto known = stored.find(raw); known != stored.end()) return *known->second;
  if (raw == kStackTableFullFrame) {
    Frame frame;
    frame.function = "[stack table full]";
    frame.resolved = true;
    return {frame};
  }
  switch (format::FrameTagOf(raw)) {
    case format::kFrameReturn:
    case format::kFrameExact:
      return FromLibrary(raw);
    case format::kFrameUnknown:
    case format::kFrameUnknownExact:
      return FromGeneratedCode(raw);
    case format::kFrameJava: {
      auto name = java_names.find(format::JavaNameOf(raw));
      Frame frame;
      frame.java = true;
      frame.line = static_cast<int>(format::JavaLineOf(raw));
      frame.resolved = name != java_names.end() && !name->second->empty();
      std::pair<std::string, std::string> method_and_file;
      if (frame.resolved) method_and_file = absl::StrSplit(*name->second, absl::MaxSplits('\n', 1));
      frame.function = frame.resolved ? method_and_file.first : "[java method]";
      frame.file = method_and_file.second;
      return {frame};
    }
    default:
      return {Unresolved(absl::StrFormat("[frame 0x%x]", raw))};
  }
}

const std::vector<Frame>& Symbolizer::Resolve(uint64_t raw_frame) {
  std::unique_ptr<std::vector<Frame>>& frames = state_->resolved[raw_frame];
  if (frames == nullptr) {
    frames = std::make_unique<std::vector<Frame>>(state_->Name(raw_frame));
    bool any_missing = false;
    for (const Frame& frame : *frames) any_missing |= !frame.resolved;
    if (any_missing) state_->unresolved++;
  }
  return *frames;
}

uint64_t Symbolizer::unresolved_frames() const { return state_->unresolved; }
const std::vector<std::string>& Symbolizer::warnings() const { return state_->warnings; }

}  // namespace cadastre
