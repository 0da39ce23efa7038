#include "report/rows_builder.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "interposer/profile_format.h"
#include "report/committed.h"
#include "report/thread_pattern.h"

namespace cadastre {
namespace {

// Rounds each value down or up so that they sum to `sum`: those with the largest remainders go up (Hamilton's method).
void RoundToSum(std::vector<double*>& values, double sum) {
  std::vector<std::pair<double, size_t>> remainders;
  for (size_t i = 0; i < values.size(); i++) {
    double whole = std::floor(*values[i]);
    remainders.emplace_back(*values[i] - whole, i);
    *values[i] = whole;
    sum -= whole;
  }
  std::sort(remainders.begin(), remainders.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  for (size_t i = 0; i < remainders.size() && sum >= 0.5; i++, sum--) *values[remainders[i].second] += 1;
}

using WeightByName = std::map<std::string, uint64_t>;

std::string Heaviest(const WeightByName& weights) {
  std::string best;
  uint64_t most = 0;
  for (const auto& [name, weight] : weights) {
    if (weight > most) {
      best = name;
      most = weight;
    }
  }
  return best;
}

class RowsBuilder {
 public:
  RowsBuilder(const Profile& profile, Attribution* attribution, Report* report)
      : profile_(profile), attribution_(attribution), report_(report), parts_(profile.sites.size()) {
    const std::string unnamed_thread = UnnamedThreadName(profile);
    absl::flat_hash_map<std::string, uint32_t> numbers;
    for (const Thread& thread : profile.threads) {
      std::string pattern = ThreadPattern(thread.name, unnamed_thread);
      auto [entry, inserted] = numbers.try_emplace(pattern, static_cast<uint32_t>(patterns_.size()));
      if (inserted) patterns_.push_back({pattern, {}, false});
      pattern_of_.push_back(entry->second);
    }
    if (patterns_.empty()) patterns_.push_back({});
  }

  void AddLiveSamples() {
    uint64_t now_ns = profile_.duration_ns;
    double threshold_ns = report_->older_than_s * 1e9;
    for (const LiveSample& sample : profile_.live) {
      if (sample.site >= profile_.sites.size()) continue;
      double age_ns = now_ns > sample.time_ns ? static_cast<double>(now_ns - sample.time_ns) : 0;
      bool old = report_->older_than_s > 0 && age_ns >= threshold_ns;
      Part& part = PartOf(sample.site, &attribution_->ChargeOf(sample.site, sample.thread));
      part.tally.AddLive(sample.size_bytes, sample.weight_bytes, old);
      uint32_t pattern = sample.thread < pattern_of_.size() ? pattern_of_[sample.thread] : 0;
      AddTo(&part.threads, pattern, sample.weight_bytes);
      patterns_[pattern].tally.AddLive(sample.size_bytes, sample.weight_bytes, old);
      patterns_[pattern].seen = true;
    }
  }

  // Volume and peak are kept per site, not per thread. Where a site's live samples fall to several owners (by their
  // threads), they are divided as the live bytes are, and the report says so; where none is live, the thread of the
  // first sample decides.
  void AddVolumes() {
    for (uint32_t index = 0; index < profile_.sites.size(); index++) {
      const Site& site = profile_.sites[index];
      if (site.samples == 0 && site.allocated_bytes == 0 && site.bytes_at_peak == 0) continue;
      if (parts_[index].empty()) PartOf(index, &attribution_->ChargeOf(index, site.first_thread));
      std::vector<Part>& parts = parts_[index];
      report_->divided_sites += parts.size() > 1;
      uint64_t live = 0;
      for (const Part& part : parts) live += part.tally.live_bytes;
      Volume rest = {site.samples, site.allocated_bytes, site.bytes_at_peak, site.allocated_count,
                     site.allocated_variance};
      for (size_t i = 0; i < parts.size(); i++) {
        const bool last = i + 1 == parts.size();
        const double share = live > 0 ? static_cast<double>(parts[i].tally.live_bytes) / static_cast<double>(live)
                             : last   ? 1.0
                                      : 0.0;
        AddVolume(site, last ? 1.0 : share, last, &rest, &parts[i].tally);
      }
    }
  }

  // What the program has mapped for itself, as far as it is committed. An allocator's mappings hold the blocks that are
  // counted as live.
  void AddMappings() {
    for (const Mapping& mapping : profile_.mappings) {
      if (mapping.site == kNoSite || (mapping.flags & format::kMappingAllocator) != 0) continue;
      const uint64_t bytes = CommittedBytes(mapping, profile_.process.has_value() ? &*profile_.process : nullptr);
      if (bytes == 0) continue;
      Part& part = PartOf(mapping.site, &attribution_->ChargeOf(mapping.site, mapping.thread));
      part.tally.mapped_bytes += bytes;
      const uint32_t pattern = mapping.thread < pattern_of_.size() ? pattern_of_[mapping.thread] : 0;
      AddTo(&part.threads, pattern, bytes);
      patterns_[pattern].tally.mapped_bytes += bytes;
      patterns_[pattern].seen |= report_->options.metric == Metric::kMapped;
    }
  }

  // `share` of what the site had; the last part takes what is left, so that the parts are the site.
  struct Volume {
    uint64_t samples, allocated_bytes, bytes_at_peak;
    double allocated_count, allocated_variance;
  };
  void AddVolume(const Site& site, double share, bool last, Volume* rest, Tally* tally) {
    auto take = [&](uint64_t whole, uint64_t* left) {
      uint64_t part = last ? *left : std::min(*left, static_cast<uint64_t>(share * static_cast<double>(whole)));
      *left -= part;
      return part;
    };
    const double count = last ? rest->allocated_count : share * site.allocated_count;
    const double variance = last ? rest->allocated_variance : share * site.allocated_variance;
    rest->allocated_count -= count;
    rest->allocated_variance -= variance;
    tally->samples += take(site.samples, &rest->samples);
    tally->allocated_bytes += take(site.allocated_bytes, &rest->allocated_bytes);
    const uint64_t peak = take(site.bytes_at_peak, &rest->bytes_at_peak);
    tally->peak_bytes += peak;
    tally->allocated_count += count;
    tally->allocated_variance += variance;
    // No sample of the peak is kept. A byte of it is as uncertain as one that was allocated here, or, where memory ran
    // short and live samples were thinned, as one that is live.
    double per_byte =
        site.allocated_bytes > 0 ? site.allocated_variance / static_cast<double>(site.allocated_bytes) : 0;
    if (profile_.losses.interval_doublings > 0 && tally->live_bytes > 0) {
      per_byte = std::max(per_byte, tally->live_variance / static_cast<double>(tally->live_bytes));
    }
    tally->peak_variance += per_byte * static_cast<double>(peak);
  }

  void MakeRows() {
    absl::flat_hash_map<std::string, uint64_t> suggested_live;
    absl::flat_hash_map<std::string, uint64_t> suggested_allocated;
    report_->sites.reserve(parts_.size());
    for (uint32_t index = 0; index < parts_.size(); index++) {
      for (Part& part : parts_[index]) {
        const Charge& charge = *part.charge;
        SiteRow row;
        row.site = index;
        row.module = charge.module;
        row.team = charge.team;
        row.rule = charge.rule;
        row.via = charge.via;
        row.guessed = charge.guessed;
        row.unattributed = charge.kind == ChargeKind::kUnattributed;
        row.owner_frame = charge.owner_frame;
        row.created_by = charge.created_by;
        row.telling_frame = attribution_->ChargeOfStack(index).telling_frame;
        row.kind = profile_.sites[index].kind;
        row.truncated = profile_.sites[index].truncated;
        row.thread = HeaviestThread(part.threads);
        row.tally = part.tally;
        const Container container = attribution_->ContainerOf(index);
        row.holder = container.rule != nullptr ? container.rule->module : row.module;
        row.pooled = container.pooled;
        report_->totals.Add(part.tally);
        std::string team = row.unattributed ? kUnattributedModule : row.team;
        Group& module = modules_[{row.module, team}];
        module.Add(row, charge);
        module.sites.push_back(report_->sites.size());
        teams_[team].Add(row, charge);
        absl::string_view library = attribution_->LibraryOf(index);
        auto known = libraries_.find(library);
        if (known == libraries_.end()) known = libraries_.try_emplace(std::string(library)).first;
        known->second.Add(row, charge);
        holders_[row.holder].Add(row, charge);
        if (container.rule != nullptr) AddShared(*container.rule, row, charge);
        if (row.unattributed) {
          std::string prefix = attribution_->SuggestedPrefix(index);
          if (!prefix.empty()) {
            suggested_live[prefix] += row.tally.live_bytes;
            suggested_allocated[prefix] += row.tally.allocated_bytes;
          }
        }
        report_->sites.push_back(std::move(row));
      }
    }
    WholeCounts();
    report_->unattributed.name = kUnattributedModule;
    report_->unattributed.unattributed = true;
    for (auto& [key, group] : modules_) {
      Row row = group.ToRow(key.first);
      row.team = key.second;
      if (row.unattributed) {
        row.team.clear();
        report_->unattributed = row;
      } else {
        report_->modules.push_back(row);
      }
    }
    for (auto& [team, group] : teams_) report_->teams.push_back(group.ToRow(team));
    for (auto& [library, group] : libraries_) report_->libraries.push_back(group.ToRow(library));
    for (auto& [holder, group] : holders_) report_->holders.push_back(group.ToRow(holder));
    for (auto& [key, shared] : shared_) {
      for (auto& [creator, group] : shared.creators) shared.row.creators.push_back(group.ToRow(creator));
      report_->shared.push_back(std::move(shared.row));
    }
    for (const ThreadPool& pool : patterns_) {
      if (!pool.seen) continue;
      Row row;
      row.name = pool.name;
      row.tally = pool.tally;
      report_->threads.push_back(row);
    }
    for (auto& [prefix, live] : suggested_live)
      report_->suggestions.push_back({prefix, live, suggested_allocated[prefix]});
  }

 private:
  // Counts of blocks are printed as whole numbers: here they become such, so that rows still add up to the total in
  // every grouping, and sites to their module.
  void WholeCounts() {
    double total = report_->totals.live_count = std::round(report_->totals.live_count);
    std::vector<double*> counts;
    for (auto& [key, group] : modules_) counts.push_back(&group.tally.live_count);
    RoundToSum(counts, total);
    for (auto& [team, group] : teams_) group.tally.live_count = 0;
    for (auto& [key, group] : modules_) {
      teams_[key.second].tally.live_count += group.tally.live_count;
      counts.clear();
      for (size_t site : group.sites) counts.push_back(&report_->sites[site].tally.live_count);
      RoundToSum(counts, group.tally.live_count);
    }
    counts.clear();
    for (auto& [library, group] : libraries_) counts.push_back(&group.tally.live_count);
    RoundToSum(counts, total);
    counts.clear();
    for (auto& [holder, group] : holders_) counts.push_back(&group.tally.live_count);
    RoundToSum(counts, total);
    counts.clear();
    for (ThreadPool& pool : patterns_) counts.push_back(&pool.tally.live_count);
    RoundToSum(counts, total);
  }

  // What of one site falls to one owner.
  struct Part {
    const Charge* charge;
    Tally tally;
    std::vector<std::pair<uint32_t, uint64_t>> threads;  // number of the pool, live bytes; a site has few
  };

  // Threads whose names differ in a number at the end.
  struct ThreadPool {
    std::string name;
    Tally tally;
    bool seen = false;
  };

  static void AddTo(std::vector<std::pair<uint32_t, uint64_t>>* weights, uint32_t pool, uint64_t weight) {
    for (auto& [number, sum] : *weights) {
      if (number == pool) {
        sum += weight;
        return;
      }
    }
    weights->emplace_back(pool, weight);
  }

  // A thread whose name is not known says less than any other.
  std::string HeaviestThread(const std::vector<std::pair<uint32_t, uint64_t>>& weights) const {
    const std::string* best = nullptr;
    uint64_t most = 0;
    for (const auto& [number, weight] : weights) {
      const std::string& name = patterns_[number].name;
      if (name.empty()) continue;
      if (best != nullptr && (weight < most || (weight == most && *best < name))) continue;
      best = &name;
      most = weight;
    }
    return best == nullptr ? "" : *best;
  }

  struct Group {
    Tally tally;
    WeightByName vias;  // "" is none; weighed by live bytes, or by volume where nothing is live
    uint64_t pooled_bytes = 0;
    bool guessed = false, unattributed = false;
    std::vector<size_t> sites;  // of a module: indices into Report::sites

    void Add(const SiteRow& row, const Charge& charge) {
      tally.Add(row.tally);
      guessed |= row.guessed;
      unattributed |= row.unattributed;
      if (row.pooled) pooled_bytes += row.tally.live_bytes;
      vias[charge.via] += row.tally.live_bytes + row.tally.allocated_bytes / 1024 + row.tally.mapped_bytes / 1024;
    }
    Row ToRow(const std::string& name) const {
      Row row;
      row.name = name;
      row.tally = tally;
      row.via = Heaviest(vias);
      row.pooled_bytes = pooled_bytes;
      row.guessed = guessed;
      row.unattributed = unattributed;
      return row;
    }
  };

  struct Shared {
    SharedRow row;
    std::map<std::string, Group> creators;
  };

  void AddShared(const Rule& container, const SiteRow& row, const Charge& charge) {
    const bool pool = container.walk == RuleWalk::kPool;
    Shared& shared = shared_[{container.module, pool}];
    shared.row.holder = container.module;
    shared.row.team = container.team;
    shared.row.pool = pool;
    shared.row.tally.Add(row.tally);
    shared.creators[row.module].Add(row, charge);
  }

  Part& PartOf(uint32_t site, const Charge* charge) {
    std::vector<Part>& parts = parts_[site];
    for (Part& part : parts) {
      if (part.charge == charge || (part.charge->module == charge->module && part.charge->team == charge->team))
        return part;
    }
    parts.push_back({charge, {}, {}});
    return parts.back();
  }

  const Profile& profile_;
  Attribution* attribution_;
  Report* report_;
  std::vector<std::vector<Part>> parts_;  // by site
  std::vector<uint32_t> pattern_of_;      // thread → its pool
  std::vector<ThreadPool> patterns_;      // [0] is that of thread 0, not known
  std::map<std::pair<std::string, std::string>, Group> modules_;
  std::map<std::string, Group> teams_, holders_;
  std::map<std::pair<std::string, bool>, Shared> shared_;  // module of the rule, whether it is a pool
  std::map<std::string, Group, std::less<>> libraries_;
};

}  // namespace

void SumRows(const Profile& profile, Attribution* attribution, Report* report) {
  RowsBuilder builder(profile, attribution, report);
  builder.AddLiveSamples();
  builder.AddVolumes();
  builder.AddMappings();
  builder.MakeRows();
}

}  // namespace cadastre
