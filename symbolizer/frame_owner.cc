#include "symbolizer/frame_owner.h"

#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/class_names.h"
#include "symbolizer/library_names.h"
#include "symbolizer/rule_matcher.h"

namespace cadastre {
namespace {

constexpr size_t kKernelNameBytes = 15;  // TASK_COMM_LEN of the Linux kernel, less the NUL

// Rust spells methods of an impl "<acme::Index>::add" and "<acme::Index as core::fmt::Display>::fmt". Gives what a
// prefix may be matched against: the type and, after " as ", the trait; references and pointers are passed over. Empty
// where there is none.
struct ImplNames {
  std::string_view self_type, trait_name;
};

ImplNames SplitImpl(std::string_view function) {
  ImplNames names;
  if (function.empty() || function[0] != '<') return names;
  names.self_type = function.substr(1);
  for (bool again = true; again;) {
    again = false;
    for (std::string_view sigil : {"<", "&", "mut ", "*const ", "*mut ", "dyn ", "[", "("}) {
      if (names.self_type.substr(0, sigil.size()) == sigil) {
        names.self_type.remove_prefix(sigil.size());
        again = true;
      }
    }
  }
  int depth = 0;
  for (size_t i = 0; i < function.size(); i++) {
    if (function[i] == '<') depth++;
    if (function[i] == '>' && (i == 0 || function[i - 1] != '-') && --depth == 0) break;
    if (depth == 1 && function.substr(i, 4) == " as ") {
      names.trait_name = function.substr(i + 4);
      break;
    }
  }
  return names;
}

}  // namespace

struct FrameOwner::State {
  std::vector<Rule> rules;
  RuleMatcher functions, classes, sources, libraries, library_functions, threads;
  bool has_sources = false;
  // A frame's library is one of a few hundred, a frame one of a million: what can be said of a library alone is said
  // once.
  struct LibraryEntry {
    RuleMatch match;
    std::vector<std::string> names;  // those that rules about functions know, with the '!'
  };
  mutable std::mutex entries_mutex;
  mutable absl::flat_hash_map<std::string, std::unique_ptr<LibraryEntry>> entries;
  absl::flat_hash_map<std::string, int> cut_threads;  // what the kernel keeps of prefixes longer than that

  const Rule* At(RuleMatch match) const { return match.rule < 0 ? nullptr : &rules[match.rule]; }
  const Rule* FindFunction(const Frame& frame) const;
  const Rule* FindSource(const Frame& frame) const;
  const Rule* FindLibrary(const Frame& frame) const;
  const LibraryEntry& EntryOf(const Frame& frame) const;
};

FrameOwner::FrameOwner(const OwnerRules& rules) : state_(std::make_unique<State>()) {
  state_->rules = rules.rules;
  for (bool built_in : {false, true}) {  // the user's first, whatever order they came in
    for (size_t i = 0; i < state_->rules.size(); i++) {
      const Rule& rule = state_->rules[i];
      if (rule.built_in != built_in) continue;
      int index = static_cast<int>(i);
      switch (rule.key) {
        case RuleKey::kFunction:
          state_->functions.Add(rule.prefix, index);
          state_->classes.Add(rule.prefix, index);
          break;
        case RuleKey::kThread:
          state_->threads.Add(rule.prefix, index);
          if (rule.prefix.size() > kKernelNameBytes)
            state_->cut_threads.try_emplace(rule.prefix.substr(0, kKernelNameBytes), index);
          break;
        case RuleKey::kClass:
          state_->classes.Add(rule.prefix, index);
          break;
        case RuleKey::kSource:
          state_->sources.Add(rule.prefix, index);
          state_->has_sources = true;
          break;
        case RuleKey::kLibrary:
          if (rule.prefix.find('!') != std::string::npos) {
            state_->library_functions.Add(rule.prefix, index);
          } else {
            state_->libraries.Add(rule.prefix, index);
          }
          break;
      }
    }
  }
}

FrameOwner::~FrameOwner() = default;

const Rule* FrameOwner::State::FindFunction(const Frame& frame) const {
  if (frame.function.empty() || !frame.resolved) return nullptr;  // "libfoo.so+0x12" is no function
  std::string_view function = frame.function;
  if (const Rule* rule = At(functions.Longest(function))) return rule;
  ImplNames impl = SplitImpl(function);
  if (impl.self_type.empty()) return nullptr;
  // An impl is in the crate of its type or of its trait: acme's trait for alloc::vec::Vec is acme's code.
  const Rule* self = At(functions.Longest(impl.self_type));
  if (self != nullptr && !IsTransparentInStacks(*self)) return self;
  const Rule* of_trait = impl.trait_name.empty() ? nullptr : At(functions.Longest(impl.trait_name));
  if (of_trait != nullptr && (self == nullptr || !IsTransparentInStacks(*of_trait))) {
    // A std trait for a type that no rule knows says nothing about who wrote it.
    if (self != nullptr || !IsTransparentInStacks(*of_trait)) return of_trait;
  }
  return self;
}

const Rule* FrameOwner::State::FindSource(const Frame& frame) const {
  if (!has_sources || frame.file.empty()) return nullptr;
  std::string_view path = frame.file;
  RuleMatch best = sources.Longest(path);
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    RuleMatch match = sources.Longest(path.substr(slash + 1));
    if (match.rule >= 0 && (match.length > best.length || best.rule < 0)) best = match;
  }
  return At(best);
}

const FrameOwner::State::LibraryEntry& FrameOwner::State::EntryOf(const Frame& frame) const {
  std::lock_guard<std::mutex> lock(entries_mutex);
  std::unique_ptr<LibraryEntry>& entry =
      frame.soname.empty() ? entries[frame.library] : entries[frame.library + '\0' + frame.soname];
  if (entry != nullptr) return *entry;
  entry = std::make_unique<LibraryEntry>();
  for (std::string& name : LibraryNames(frame.library, frame.soname)) {
    RuleMatch match = libraries.Longest(name + "$");
    if (match.rule >= 0 && (match.length > entry->match.length || entry->match.rule < 0)) entry->match = match;
    name += '!';
    if (library_functions.LeadsOn(name)) entry->names.push_back(std::move(name));
  }
  return *entry;
}

const Rule* FrameOwner::State::FindLibrary(const Frame& frame) const {
  if (frame.library.empty()) return nullptr;
  const LibraryEntry& entry = EntryOf(frame);
  const Rule* library = At(entry.match);
  if (!frame.resolved) return library;
  RuleMatch best;
  for (const std::string& name : entry.names) {
    RuleMatch match = library_functions.Longest(name + frame.function);
    if (match.rule >= 0 && (match.length > best.length || best.rule < 0)) best = match;
  }
  const Rule* function = At(best);
  // Whoever claims a whole library claims it from the built-in rules about its functions too.
  if (function == nullptr || (library != nullptr && !library->built_in && function->built_in)) return library;
  return function;
}

const Rule* FrameOwner::Find(const Frame& frame) const {
  if (const Rule* rule = state_->FindFunction(frame)) return rule;
  if (frame.java) return state_->FindSource(frame);
  if (const Rule* rule = state_->FindSource(frame)) return rule;
  return state_->FindLibrary(frame);
}

const Rule* FrameOwner::FindLibrary(const std::string& path) const {
  Frame frame;
  frame.library = path;
  return state_->FindLibrary(frame);
}

const Rule* FrameOwner::FindThread(const std::string& thread_name) const {
  // A name as long as the kernel keeps them may be the beginning of one that a longer rule means.
  if (thread_name.size() == kKernelNameBytes) {
    auto cut = state_->cut_threads.find(thread_name);
    if (cut != state_->cut_threads.end()) return &state_->rules[static_cast<size_t>(cut->second)];
  }
  return state_->At(state_->threads.Longest(thread_name));
}

const Rule* FrameOwner::FindClass(std::string_view class_name) const {
  RuleMatch best;
  for (const std::string& name : ClassNames(class_name)) {
    RuleMatch match = state_->classes.Longest(name);
    if (match.rule >= 0 && (match.length > best.length || best.rule < 0)) best = match;
  }
  return state_->At(best);
}

bool IsTransparentInStacks(const Rule& rule) {
  if (rule.walk != RuleWalk::kOwner) return true;
  return !rule.kind_given && IsPlatformModule(rule.module);
}

}  // namespace cadastre
