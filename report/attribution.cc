#include "report/attribution.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "report/function_name.h"
#include "report/thread_pattern.h"

namespace cadastre {
namespace {

constexpr int kGuessPackageParts = 3;
constexpr uint32_t kNotNumbered = UINT32_MAX;

std::string RuleText(const Rule& rule) { return absl::StrCat(RulePlace(rule), " ", RulePrefixText(rule)); }

}  // namespace

std::string LibraryStem(const std::string& path) {
  std::string name(FileName(path));
  absl::string_view deleted = " (deleted)";
  if (absl::EndsWith(name, deleted)) name.resize(name.size() - deleted.size());
  size_t so = name.find(".so");
  // Only a version may follow ".so": "libfoo.so.1.2", but not "libfoo.sources".
  if (so != std::string::npos && (so + 3 == name.size() || name[so + 3] == '.')) name.resize(so + 3);
  return name;
}

std::string PrefixForFrame(const Frame& frame) {
  if (absl::StartsWith(frame.function, "[")) return "";  // no function: a word of ours, "[stack table full]"
  if (frame.java) {
    std::string package = JavaPackage(frame.function, kGuessPackageParts);
    return package.empty() ? JavaClassPrefix(frame.function) : absl::StrCat(package, ".");
  }
  if (frame.resolved) {
    std::string prefix = NamespacePrefix(frame.function);
    if (!prefix.empty()) return prefix;
  }
  if (!frame.library.empty()) return absl::StrCat("lib:", LibraryStem(frame.library));
  return frame.resolved ? frame.function : "";
}

struct Attribution::State {
  // What one raw frame means for ownership, worked out once.
  struct KnownFrame {
    const std::vector<Frame>* frames = nullptr;  // nullptr: not looked at yet
    std::vector<const Rule*> rules;              // one for each frame; nullptr = none matched
    absl::string_view library;                   // file name of the physical frame's; inlined ones carry it
    bool own = false;                            // libcadastre's: not part of the program's stack
    bool plumbing = false;                       // the physical frame is
  };

  const Profile& profile;
  const OwnerRules& owner_rules;
  Symbolizer* symbolizer;
  FrameOwner frame_owner;
  // Sites share their frames: each distinct one has a small number, so that a walk over a million frames looks nothing
  // up.
  std::vector<uint64_t> distinct;  // number → raw frame
  std::vector<KnownFrame> known;   // by number; never grows
  // The same for who wants frames alone, millions of them: none of libcadastre's. Inlined functions are frames of their
  // own, so these have numbers of their own, consecutive for one raw frame.
  struct Shown {
    uint32_t first = kNotNumbered, count = 0;
  };
  std::vector<Shown> shown;                // by raw frame's number
  std::vector<const Frame*> shown_frames;  // by frame's number
  std::vector<uint32_t> numbers;           // of all sites' frames, one site after the other
  std::vector<uint64_t> first_number;      // site → where its numbers begin; one more than there are sites
  absl::flat_hash_set<std::string> own_libraries;
  std::string executable;
  struct SiteCharge {
    Charge charge;
    Container container;
  };
  std::vector<std::unique_ptr<SiteCharge>> site_charges;  // by site
  std::vector<std::string> patterns;                      // of the threads' names
  // (thread's name, site of its creation, of its creator's creation) → charge by a `thread:` rule or by who created it,
  // or null.
  absl::flat_hash_map<std::tuple<std::string, uint32_t, uint32_t>, std::unique_ptr<Charge>> by_thread;
  bool guess;

  State(const Profile& p, const OwnerRules& r, Symbolizer* s)
      : profile(p), owner_rules(r), symbolizer(s), frame_owner(r), site_charges(p.sites.size()), guess(r.path.empty()) {
    for (const Library& library : p.libraries) {
      if (library.cadastre && !library.path.empty()) own_libraries.insert(library.path);
    }
    absl::flat_hash_map<uint64_t, uint32_t> number_of;
    first_number.reserve(p.sites.size() + 1);
    for (const Site& site : p.sites) {
      first_number.push_back(numbers.size());
      for (uint64_t raw : site.frames) {
        auto [entry, inserted] = number_of.try_emplace(raw, static_cast<uint32_t>(distinct.size()));
        if (inserted) distinct.push_back(raw);
        numbers.push_back(entry->second);
      }
    }
    first_number.push_back(numbers.size());
    known.resize(distinct.size());
    shown.resize(distinct.size());
    const std::string unnamed = UnnamedThreadName(p);
    for (const Thread& thread : p.threads) patterns.push_back(ThreadPattern(thread.name, unnamed));
  }

  absl::Span<const uint32_t> NumbersOf(uint32_t site) const {
    return absl::MakeConstSpan(numbers.data() + first_number[site], first_number[site + 1] - first_number[site]);
  }

  const KnownFrame& Know(uint32_t number) {
    KnownFrame& slot = known[number];
    if (slot.frames != nullptr) return slot;
    slot.frames = &symbolizer->Resolve(distinct[number]);
    for (const Frame& frame : *slot.frames) slot.rules.push_back(frame_owner.Find(frame));
    if (slot.frames->empty()) return slot;
    slot.own = own_libraries.contains(slot.frames->front().library);
    slot.library = FileName(slot.frames->back().library);
    slot.plumbing = slot.rules.back() != nullptr && IsPlumbing(slot.rules.back()->module);
    return slot;
  }

  Shown ShownOf(uint32_t number) {
    Shown& slot = shown[number];
    if (slot.first != kNotNumbered) return slot;
    const KnownFrame& known_frame = Know(number);
    slot.first = static_cast<uint32_t>(shown_frames.size());
    if (known_frame.own) return slot;
    for (const Frame& frame : *known_frame.frames) shown_frames.push_back(&frame);
    slot.count = static_cast<uint32_t>(known_frame.frames->size());
    return slot;
  }

  bool OwnByGuess(const Frame& frame, Charge* charge) {
    std::string module;
    if (frame.java) {
      module = JavaPackage(frame.function, kGuessPackageParts);
      if (module.empty()) module = frame.function.substr(0, frame.function.rfind('.'));
    } else if (!frame.library.empty() && frame.library[0] != '[') {
      module = LibraryStem(frame.library);
    }
    if (module.empty()) return false;
    charge->module = module;
    charge->guessed = true;
    charge->rule = absl::StrCat("guess: ", frame.java ? absl::StrCat(module, ".") : absl::StrCat("lib:", module));
    return true;
  }

  static bool IsJvm(const KnownFrame& frame) {
    return !frame.rules.empty() && frame.rules.back() != nullptr &&
           absl::StartsWith(frame.rules.back()->module, "platform/jvm");
  }
  bool IsJvmMapping(uint32_t site) {
    for (uint32_t number : NumbersOf(site)) {
      const KnownFrame& frame = Know(number);
      if (!frame.own) return IsJvm(frame);
    }
    return false;
  }

  // The site's charge without the thread's part.
  std::unique_ptr<SiteCharge> Walk(uint32_t site_index) {
    const Site& site = profile.sites[site_index];
    auto result = std::make_unique<SiteCharge>();
    Charge& charge = result->charge;
    StackWalk walk;
    int index = 0;
    // What a JVM maps is its heap, its metaspace, its code: not the business of whoever ran into it.
    const bool by_jvm = site.kind == SiteKind::kMmap && IsJvmMapping(site_index);
    for (uint32_t number : NumbersOf(site_index)) {
      const KnownFrame& frame = Know(number);
      if (frame.own) continue;
      if (by_jvm && !IsJvm(frame)) break;
      bool owned = false;
      for (size_t i = 0; i < frame.frames->size() && !owned; i++, index++) {
        if (frame.rules[i] == nullptr && guess && OwnByGuess((*frame.frames)[i], &charge)) {
          walk.PassOwned(index);
          owned = true;
        } else {
          owned = walk.Pass(frame.rules[i], index);
        }
      }
      if (owned) break;
    }
    WalkOutcome outcome = walk.End(/*cut=*/site.truncated || site.frames.empty());
    charge.kind = outcome.kind;
    if (!charge.guessed) charge.module = outcome.module;
    if (outcome.rule != nullptr) {
      charge.team = outcome.rule->team;
      charge.rule = RuleText(*outcome.rule);
    }
    if (outcome.via != nullptr) charge.via = outcome.via->module;
    charge.owner_frame = outcome.owner_frame;
    charge.telling_frame = outcome.telling_frame;
    result->container = {outcome.container, outcome.pooled};
    return result;
  }

  const SiteCharge& OfSite(uint32_t site) {
    if (site_charges[site] == nullptr) site_charges[site] = Walk(site);
    return *site_charges[site];
  }

  std::unique_ptr<Charge> ByThreadRule(const std::string& name) {
    const Rule* rule = name.empty() ? nullptr : frame_owner.FindThread(name);
    if (rule == nullptr || IsTransparentInStacks(*rule)) return nullptr;
    return std::make_unique<Charge>(
        Charge{.kind = ChargeKind::kOwned, .module = rule->module, .team = rule->team, .rule = RuleText(*rule)});
  }

  std::unique_ptr<Charge> ByCreation(uint32_t site) {
    if (site >= profile.sites.size() || OfSite(site).charge.kind != ChargeKind::kOwned) return nullptr;
    auto charge = std::make_unique<Charge>(OfSite(site).charge);
    charge->created_by = FrameAt(site, charge->owner_frame).function;
    charge->owner_frame = -1;
    return charge;
  }

  // nullptr: neither a `thread:` rule nor who created it says anything.
  const Charge* OfThread(uint32_t index) {
    if (index == 0 || index >= profile.threads.size()) return nullptr;
    const Thread& thread = profile.threads[index];
    auto [entry, inserted] = by_thread.try_emplace({thread.name, thread.creation_site, thread.creator_creation_site});
    if (!inserted) return entry->second.get();
    std::unique_ptr<Charge> charge = ByThreadRule(thread.name);
    if (charge == nullptr) charge = ByCreation(thread.creation_site);
    if (charge == nullptr) charge = ByCreation(thread.creator_creation_site);
    if (charge != nullptr) charge->via = absl::StrCat("thread ", patterns[index]);
    entry->second = std::move(charge);
    return entry->second.get();
  }

  const Frame& FrameAt(uint32_t site, int index) {
    for (uint32_t number : NumbersOf(site)) {
      const KnownFrame& frame = Know(number);
      if (frame.own) continue;
      const int count = static_cast<int>(frame.frames->size());
      if (index < count) return (*frame.frames)[static_cast<size_t>(index)];
      index -= count;
    }
    static const Frame kNone;
    return kNone;
  }
};

Attribution::Attribution(const Profile& profile, const OwnerRules& rules, Symbolizer* symbolizer)
    : state_(std::make_unique<State>(profile, rules, symbolizer)) {}
Attribution::~Attribution() = default;

const Charge& Attribution::ChargeOf(uint32_t site, uint32_t thread) {
  const Charge& charge = state_->OfSite(site).charge;
  if (charge.kind == ChargeKind::kOwned) return charge;
  const Charge* by_thread = state_->OfThread(thread);
  return by_thread != nullptr ? *by_thread : charge;
}

const Charge& Attribution::ChargeOfStack(uint32_t site) { return state_->OfSite(site).charge; }

Container Attribution::ContainerOf(uint32_t site) { return state_->OfSite(site).container; }

std::vector<const Frame*> Attribution::FramesOf(uint32_t site) {
  std::vector<const Frame*> frames;
  frames.reserve(state_->NumbersOf(site).size());
  for (uint32_t number : state_->NumbersOf(site)) {
    const State::Shown shown = state_->ShownOf(number);
    for (uint32_t i = 0; i < shown.count; i++) frames.push_back(state_->shown_frames[shown.first + i]);
  }
  return frames;
}

void Attribution::FrameNumbersOf(uint32_t site, std::vector<uint32_t>* numbers) {
  numbers->clear();
  for (uint32_t number : state_->NumbersOf(site)) {
    const State::Shown shown = state_->ShownOf(number);
    for (uint32_t i = 0; i < shown.count; i++) numbers->push_back(shown.first + i);
  }
}

const Frame& Attribution::FrameNumbered(uint32_t number) const { return *state_->shown_frames[number]; }

std::string Attribution::SuggestedPrefix(uint32_t site) {
  for (uint32_t number : state_->NumbersOf(site)) {
    const State::KnownFrame& known = state_->Know(number);
    if (known.own) continue;
    for (size_t i = 0; i < known.frames->size(); i++) {
      if (known.rules[i] != nullptr) continue;
      std::string prefix = PrefixForFrame((*known.frames)[i]);
      if (!prefix.empty()) return prefix;
    }
  }
  return "";
}

absl::string_view Attribution::LibraryOf(uint32_t site) {
  absl::string_view plumbing;
  for (uint32_t number : state_->NumbersOf(site)) {
    const State::KnownFrame& known = state_->Know(number);
    if (known.own || known.library.empty()) continue;
    if (!known.plumbing) return known.library;
    if (plumbing.empty()) plumbing = known.library;
  }
  return plumbing;
}

const std::vector<uint64_t>& Attribution::DistinctFrames() const { return state_->distinct; }

const FrameOwner& Attribution::frame_owner() const { return state_->frame_owner; }

bool Attribution::guesses() const { return state_->guess; }

}  // namespace cadastre
