#include "report/rollup.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/attribution.h"
#include "report/collapsed_stacks.h"
#include "report/frame_text.h"
#include "report/function_name.h"
#include "report/stack_walk.h"
#include "symbolizer/frame_owner.h"

namespace cadastre {
namespace {

// Of texts whose rule is remembered: some hundred thousand frames, more than most programs have methods on their
// stacks. A larger table misses the processor's caches at every frame of a file whose frames hardly recur.
constexpr size_t kMaxKnownFrameBytes = 8 << 20;
constexpr size_t kMaxPrefixes = 100'000;  // that are counted for suggestions
constexpr size_t kMaxSuggestions = 5;
constexpr int kPackageParts = 3;

bool Add(uint64_t part, uint64_t* sum) { return !__builtin_add_overflow(*sum, part, sum); }

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Shares of `bytes` in proportion to `weights`, whole numbers that add up to it: the largest remainders go up.
std::vector<uint64_t> Divide(uint64_t bytes, const std::vector<uint64_t>& weights) {
  absl::uint128 sum = 0;
  for (uint64_t weight : weights) sum += weight;
  std::vector<uint64_t> parts(weights.size());
  std::vector<std::pair<absl::uint128, size_t>> remainders;
  uint64_t left = bytes;
  for (size_t i = 0; i < weights.size() && sum > 0; i++) {
    absl::uint128 product = absl::uint128(bytes) * weights[i];
    parts[i] = static_cast<uint64_t>(product / sum);
    remainders.emplace_back(product % sum, i);
    left -= parts[i];
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (size_t i = 0; i < remainders.size() && left > 0; i++, left--) parts[remainders[i].second]++;
  return parts;
}

class Summing {
 public:
  explicit Summing(const OwnerRules& rules) : owner_(rules) {
    for (const Rule& rule : rules.rules) {
      if (!rule.team.empty()) teams_of_[rule.module].insert(rule.team);
    }
  }

  absl::Status ReadHeap(const std::string& path) {
    absl::StatusOr<HeapClasses> heap =
        ReadHeapClasses(path, [&](std::string_view name, uint64_t bytes) { return TakeClass(name, bytes); });
    if (!heap.ok()) return heap.status();
    rollup_.heap_path = path;
    rollup_.measure = heap->measure;
    if (!heap->missing.empty()) rollup_.warnings.push_back(absl::StrCat(path, ": ", heap->missing));
    return absl::OkStatus();
  }

  absl::Status ReadStacks(const std::string& path) {
    rollup_.stacks_path = path;
    return ReadCollapsedStacks(path, [&](CollapsedStack stack) { return TakeStack(stack); });
  }

  Rollup Finish() {
    for (auto& [rule, held] : containers_) DivideContainer(*rule, held);
    for (auto& [key, sums] : sums_) {
      RollupRow row = RowOf(key, sums);
      (key.kind == ChargeKind::kUnattributed ? unattributed_ : rollup_.modules.emplace_back()) = row;
      RollupRow& team =
          teams_[key.kind == ChargeKind::kUnattributed ? std::string(kUnattributedModule) : std::string(key.team)];
      team.bytes += sums.bytes;
      team.held_bytes += sums.held_bytes;
      team.samples += sums.samples;
    }
    MergeModules();
    for (auto& [name, row] : teams_) {
      row.name = name;
      rollup_.teams.push_back(row);
    }
    auto heavier = [](const RollupRow& a, const RollupRow& b) {
      return std::make_tuple(b.bytes, b.samples, a.name) < std::make_tuple(a.bytes, a.samples, b.name);
    };
    std::sort(rollup_.modules.begin(), rollup_.modules.end(), heavier);
    std::sort(rollup_.teams.begin(), rollup_.teams.end(), heavier);
    unattributed_.name = unattributed_.team = kUnattributedModule;
    rollup_.modules.push_back(unattributed_);
    std::sort(rollup_.containers.begin(), rollup_.containers.end(),
              [](const auto& a, const auto& b) { return a.held_bytes > b.held_bytes; });
    Suggest();
    return std::move(rollup_);
  }

 private:
  // Who is charged: a module and, as two rules may give a module two teams, the team.
  struct Owner {
    ChargeKind kind = ChargeKind::kUnattributed;
    std::string_view module = kUnattributedModule, team;
    friend bool operator==(const Owner& a, const Owner& b) { return a.module == b.module && a.team == b.team; }
    template <typename H>
    friend H AbslHashValue(H h, const Owner& owner) {
      return H::combine(std::move(h), owner.module, owner.team);
    }
  };
  struct Sums {
    uint64_t bytes = 0, held_bytes = 0, samples = 0;
  };
  // What stacks through one container rule say.
  struct Held {
    uint64_t bytes = 0;
    absl::flat_hash_map<Owner, uint64_t> creators;  // samples
  };

  static Owner OwnerOf(const Rule* rule) {
    if (rule == nullptr) return {};
    return {ChargeKind::kOwned, rule->module, rule->team};
  }

  absl::Status TakeClass(std::string_view name, uint64_t bytes) {
    if (!Add(bytes, &rollup_.bytes)) return absl::InvalidArgumentError("all bytes together are more than 2^64");
    rollup_.classes++;
    const Rule* rule = owner_.FindClass(name);
    if (rule != nullptr && (rule->walk == RuleWalk::kContainer || rule->walk == RuleWalk::kPool)) {
      containers_[rule].bytes += bytes;
      return absl::OkStatus();
    }
    Sums& sums = sums_[OwnerOf(rule)];
    sums.bytes += bytes;
    sums.held_bytes += bytes;
    if (rule == nullptr) SuggestionOf(ClassPrefix(name)).bytes += bytes;
    return absl::OkStatus();
  }

  absl::Status TakeStack(CollapsedStack stack) {
    if (!Add(stack.count(), &rollup_.samples))
      return absl::InvalidArgumentError("all counts together are more than 2^64");
    rollup_.stacks++;
    StackWalk walk;
    std::string_view unmatched;
    int index = 0;
    for (std::string_view frame = stack.TakeLeaf(); !frame.empty(); frame = stack.TakeLeaf(), index++) {
      const Rule* rule = RuleOf(frame);
      if (rule == nullptr && unmatched.empty()) unmatched = frame;
      if (walk.Pass(rule, index)) break;
    }
    WalkOutcome outcome = walk.End(/*cut=*/false);
    Owner owner{outcome.kind, outcome.module, outcome.rule == nullptr ? std::string_view() : outcome.rule->team};
    sums_[owner].samples += stack.count();
    if (outcome.container != nullptr) containers_[outcome.container].creators[owner] += stack.count();
    if (outcome.kind == ChargeKind::kUnattributed) SuggestionOf(FramePrefix(unmatched)).samples += stack.count();
    return absl::OkStatus();
  }

  const Rule* RuleOf(std::string_view frame) {
    if (known_bytes_ > kMaxKnownFrameBytes) {
      known_.clear();
      known_bytes_ = 0;
    }
    const absl::string_view key(frame.data(), frame.size());
    // One hash for the search and for what is put there.
    auto known = known_.lazy_emplace(key, [&](const auto& construct) {
      known_bytes_ += frame.size();
      construct(key, FindRuleOfText(owner_, frame));
    });
    return known->second;
  }

  static std::string ClassPrefix(std::string_view name) {
    std::string source = SourceClassName(name);
    std::string package = JavaPackage(absl::StrCat(source, ".x"), kPackageParts);
    return package.empty() ? absl::StrCat("class:", source) : absl::StrCat(package, ".");
  }

  static std::string FramePrefix(std::string_view frame) { return PrefixForFrame(ReadingsOfText(frame).front()); }

  RollupSuggestion& SuggestionOf(const std::string& prefix) {
    if (suggestions_.size() < kMaxPrefixes || suggestions_.contains(prefix)) return suggestions_[prefix];
    return not_counted_;
  }

  // The samples through a container whose class is known by one rule and whose functions by another are those of its
  // module.
  void DivideContainer(const Rule& rule, const Held& held) {
    if (held.bytes == 0) return;
    absl::flat_hash_map<Owner, uint64_t> creators = held.creators;
    if (creators.empty()) {
      for (const auto& [other, its] : containers_) {
        if (other->module != rule.module) continue;
        for (const auto& [owner, samples] : its.creators) creators[owner] += samples;
      }
    }
    RollupContainer container;
    container.holder = rule.module;
    container.pool = rule.walk == RuleWalk::kPool;
    container.held_bytes = held.bytes;
    std::vector<std::pair<Owner, uint64_t>> order(creators.begin(), creators.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(b.second, a.first.module, a.first.team) <
             std::make_tuple(a.second, b.first.module, b.first.team);
    });
    std::vector<uint64_t> weights;
    for (const auto& [owner, samples] : order) {
      weights.push_back(samples);
      container.samples += samples;
    }
    std::vector<uint64_t> parts = Divide(held.bytes, weights);
    sums_[OwnerOf(&rule)].held_bytes += held.bytes;
    if (container.samples == 0) sums_[OwnerOf(&rule)].bytes += held.bytes;
    for (size_t i = 0; i < order.size(); i++) {
      if (container.samples > 0) sums_[order[i].first].bytes += parts[i];
      container.creators.push_back(
          {std::string(order[i].first.module), std::string(order[i].first.team), parts[i], 0, order[i].second});
    }
    rollup_.containers.push_back(std::move(container));
  }

  RollupRow RowOf(const Owner& owner, const Sums& sums) const {
    auto teams = teams_of_.find(std::string(owner.module));
    return {std::string(owner.module), teams == teams_of_.end() ? "" : absl::StrJoin(teams->second, ", "), sums.bytes,
            sums.held_bytes, sums.samples};
  }

  // One row for each module, whatever teams its rules name.
  void MergeModules() {
    std::map<std::string, RollupRow> merged;
    for (const RollupRow& row : rollup_.modules) {
      auto [entry, fresh] = merged.try_emplace(row.name, row);
      if (fresh) continue;
      entry->second.bytes += row.bytes;
      entry->second.held_bytes += row.held_bytes;
      entry->second.samples += row.samples;
    }
    rollup_.modules.clear();
    for (auto& [name, row] : merged) rollup_.modules.push_back(std::move(row));
  }

  void Suggest() {
    for (auto& [prefix, suggestion] : suggestions_) {
      if (prefix.empty()) continue;
      suggestion.prefix = prefix;
      rollup_.suggestions.push_back(suggestion);
    }
    std::sort(rollup_.suggestions.begin(), rollup_.suggestions.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(b.bytes, b.samples, a.prefix) < std::make_tuple(a.bytes, a.samples, b.prefix);
    });
    if (rollup_.suggestions.size() > kMaxSuggestions) rollup_.suggestions.resize(kMaxSuggestions);
  }

  FrameOwner owner_;
  Rollup rollup_;
  absl::flat_hash_map<Owner, Sums> sums_;
  std::map<const Rule*, Held> containers_;
  std::map<std::string, std::set<std::string>> teams_of_;
  std::map<std::string, RollupRow> teams_;
  RollupRow unattributed_;
  absl::flat_hash_map<std::string, const Rule*> known_;
  size_t known_bytes_ = 0;
  absl::flat_hash_map<std::string, RollupSuggestion> suggestions_;
  RollupSuggestion not_counted_;
};

}  // namespace

double Rollup::SharePercent(const RollupRow& row) const { return Percent(row.bytes, bytes); }
double Rollup::SamplesSharePercent(const RollupRow& row) const { return Percent(row.samples, samples); }
double Rollup::UnattributedPercent() const {
  return HasBytes() ? SharePercent(Unattributed()) : SamplesSharePercent(Unattributed());
}

absl::StatusOr<Rollup> RollUp(const OwnerRules& rules, const std::string& heap_path, const std::string& stacks_path) {
  Summing summing(rules);
  if (absl::Status status = summing.ReadHeap(heap_path); !status.ok()) return status;
  if (absl::Status status = summing.ReadStacks(stacks_path); !status.ok()) return status;
  Rollup rollup = summing.Finish();
  rollup.rules_path = rules.path;
  if (rollup.bytes == 0 && rollup.samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(heap_path, " has no bytes and ", stacks_path, " no samples: there is nothing to roll up"));
  }
  return rollup;
}

}  // namespace cadastre
