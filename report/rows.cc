#include "report/rows.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "report/function_name.h"
#include "report/runtime_facts.h"
#include "report/thread_pattern.h"

namespace cadastre {
namespace {

constexpr double kDefaultOlderThanSeconds = 600;
constexpr size_t kMaxSuggestions = 5;

using WeightByName = std::map<std::string, uint64_t>;

std::string Heaviest(const WeightByName& weights) {
  std::string best;
  uint64_t most = 0;
  for (const auto& [name, weight] : weights) {
    if (best.empty() || weight > most) {
      best = name;
      most = weight;
    }
  }
  return best;
}

class Builder {
 public:
  Builder(const Profile& profile, Attribution* attribution, Report* report)
      : profile_(profile), attribution_(attribution), report_(report), unnamed_thread_(UnnamedThreadName(profile)) {}

  void AddLiveSamples() {
    uint64_t now_ns = profile_.duration_ns;
    double threshold_ns = report_->older_than_s * 1e9;
    for (const LiveSample& sample : profile_.live) {
      if (sample.site >= profile_.sites.size()) continue;
      double age_ns = now_ns > sample.time_ns ? static_cast<double>(now_ns - sample.time_ns) : 0;
      bool old = report_->older_than_s > 0 && age_ns >= threshold_ns;
      Part& part = PartOf(sample.site, &attribution_->ChargeOf(sample.site, sample.thread));
      part.tally.AddLive(sample.size_bytes, sample.weight_bytes, old);
      const std::string& name =
          sample.thread < profile_.threads.size() ? profile_.threads[sample.thread].name : unknown_;
      std::string pattern = ThreadPattern(name, unnamed_thread_);
      part.threads[pattern] += sample.weight_bytes;
      threads_[pattern].AddLive(sample.size_bytes, sample.weight_bytes, old);
    }
  }

  // Volume and peak are kept per site, not per thread. Where a site's live samples fall to several owners (`thread:`
  // rules), the owner of most of its live bytes takes them.
  void AddVolumes() {
    for (uint32_t index = 0; index < profile_.sites.size(); index++) {
      const Site& site = profile_.sites[index];
      if (site.samples == 0 && site.allocated_bytes == 0 && site.bytes_at_peak == 0) continue;
      Part* heaviest = nullptr;
      for (Part& part : parts_[index]) {
        if (heaviest == nullptr || part.tally.live_bytes > heaviest->tally.live_bytes) heaviest = &part;
      }
      if (heaviest == nullptr) heaviest = &PartOf(index, &attribution_->ChargeOf(index, 0));
      Tally& tally = heaviest->tally;
      tally.samples += site.samples;
      tally.allocated_bytes += site.allocated_bytes;
      tally.allocated_variance += site.allocated_variance;
      tally.allocated_count += site.allocated_count;
      tally.peak_bytes += site.bytes_at_peak;
      // No sample of the peak is kept; the site's variance per allocated byte is the best guess of that per byte at the
      // peak.
      if (site.allocated_bytes > 0) {
        tally.peak_variance += site.allocated_variance * static_cast<double>(site.bytes_at_peak) /
                               static_cast<double>(site.allocated_bytes);
      }
    }
  }

  void MakeRows() {
    absl::flat_hash_map<std::string, uint64_t> suggested_live;
    absl::flat_hash_map<std::string, uint64_t> suggested_allocated;
    for (auto& [index, parts] : parts_) {
      for (Part& part : parts) {
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
        row.kind = profile_.sites[index].kind;
        row.truncated = profile_.sites[index].truncated;
        row.thread = Heaviest(part.threads);
        row.tally = part.tally;
        report_->totals.Add(part.tally);
        std::string team = row.unattributed ? kUnattributedModule : row.team;
        Group& module = modules_[{row.module, team}];
        module.Add(row, charge);
        teams_[team].Add(row, charge);
        libraries_[attribution_->LibraryOf(index)].Add(row, charge);
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
    for (auto& [thread, tally] : threads_) {
      Row row;
      row.name = thread;
      row.tally = tally;
      report_->threads.push_back(row);
    }
    for (auto& [prefix, live] : suggested_live)
      report_->suggestions.push_back({prefix, live, suggested_allocated[prefix]});
  }

  void Sort(Metric metric) {
    auto heavier = [metric](const auto& a, const auto& b) {
      double left = EstimateOf(a.tally, metric).value, right = EstimateOf(b.tally, metric).value;
      if (left != right) return left > right;
      if (a.tally.live_bytes != b.tally.live_bytes) return a.tally.live_bytes > b.tally.live_bytes;
      if (a.tally.allocated_bytes != b.tally.allocated_bytes) return a.tally.allocated_bytes > b.tally.allocated_bytes;
      if constexpr (std::is_same_v<std::decay_t<decltype(a)>, SiteRow>) {
        return a.site != b.site ? a.site < b.site : a.module < b.module;
      } else {
        return a.name < b.name;
      }
    };
    for (std::vector<Row>* rows : {&report_->modules, &report_->teams, &report_->libraries, &report_->threads}) {
      std::sort(rows->begin(), rows->end(), heavier);
    }
    std::sort(report_->sites.begin(), report_->sites.end(), heavier);
    bool by_live = metric != Metric::kAllocated;
    std::sort(report_->suggestions.begin(), report_->suggestions.end(),
              [by_live](const RuleSuggestion& a, const RuleSuggestion& b) {
                uint64_t left = by_live ? a.live_bytes : a.allocated_bytes,
                         right = by_live ? b.live_bytes : b.allocated_bytes;
                return left != right ? left > right : a.prefix < b.prefix;
              });
    if (report_->suggestions.size() > kMaxSuggestions) report_->suggestions.resize(kMaxSuggestions);
  }

 private:
  // What of one site falls to one owner.
  struct Part {
    const Charge* charge;
    Tally tally;
    WeightByName threads;
  };

  struct Group {
    Tally tally;
    WeightByName vias;  // weighed by live bytes, or by volume where nothing is live
    bool guessed = false, unattributed = false;

    void Add(const SiteRow& row, const Charge& charge) {
      tally.Add(row.tally);
      guessed |= row.guessed;
      unattributed |= row.unattributed;
      if (!charge.via.empty()) vias[charge.via] += row.tally.live_bytes + row.tally.allocated_bytes / 1024;
    }
    Row ToRow(const std::string& name) const {
      Row row;
      row.name = name;
      row.tally = tally;
      row.via = Heaviest(vias);
      row.guessed = guessed;
      row.unattributed = unattributed;
      return row;
    }
  };

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
  const std::string unknown_, unnamed_thread_;
  absl::flat_hash_map<uint32_t, std::vector<Part>> parts_;
  std::map<std::pair<std::string, std::string>, Group> modules_;
  std::map<std::string, Group> teams_, libraries_;
  std::map<std::string, Tally> threads_;
};

std::string MethodOf(const Profile& profile, Metric metric) {
  static constexpr const char* kQuantities[] = {"live bytes", "allocated bytes", "live blocks",
                                                "live bytes at the peak", "old live bytes"};
  return absl::StrCat(profile.exact() ? "every allocation, " : "sampled, ", kQuantities[static_cast<int>(metric)],
                      " by allocation site, first owned frame");
}

// Where a profile is read far from its binaries every library has this warning: one line for all of them.
void AddSymbolWarnings(const std::vector<std::string>& warnings, std::vector<std::string>* out) {
  constexpr char kUnreadable[] = " cannot be read: its functions have no names";
  std::vector<std::string> names;
  for (const std::string& warning : warnings) {
    absl::string_view rest = warning;
    if (absl::ConsumeSuffix(&rest, kUnreadable)) {
      names.push_back(std::string(FileName(rest)));
    } else {
      out->push_back(warning);
    }
  }
  if (names.size() == 1) out->push_back(names[0] + kUnreadable);
  if (names.size() > 1) {
    out->push_back(absl::StrCat(
        names.size(), " libraries cannot be read, their functions have no names: ", absl::StrJoin(names, ", ")));
  }
}

}  // namespace

const char* MetricName(Metric metric) {
  static constexpr const char* kNames[] = {"live", "allocated", "count", "peak", "old"};
  return kNames[static_cast<int>(metric)];
}

const char* GroupName(GroupBy by) {
  static constexpr const char* kNames[] = {"module", "team", "library", "site", "thread"};
  return kNames[static_cast<int>(by)];
}

const std::vector<Row>& Report::RowsBy(GroupBy by) const {
  switch (by) {
    case GroupBy::kTeam:
      return teams;
    case GroupBy::kLibrary:
      return libraries;
    case GroupBy::kThread:
      return threads;
    default:
      return modules;
  }
}

std::vector<const Frame*> Report::FramesOf(const SiteRow& row) const { return attribution->FramesOf(row.site); }

double Report::SharePercent(const Tally& tally) const {
  double total = EstimateOf(totals, options.metric).value;
  return total > 0 ? 100 * EstimateOf(tally, options.metric).value / total : 0;
}

double Report::ShareErrorPercentOf(const Tally& tally) const {
  return ShareErrorPercent(EstimateOf(tally, options.metric), EstimateOf(totals, options.metric));
}

Report BuildReport(const Profile& profile, const OwnerRules& rules, Attribution* attribution, Symbolizer* symbolizer,
                   const ReportOptions& options) {
  Report report;
  report.profile = &profile;
  report.attribution = attribution;
  report.options = options;
  report.trust = JudgeProfile(profile, options.min_samples);
  report.runtime = RuntimeOf(profile);
  report.method = MethodOf(profile, options.metric);
  report.rules_path = rules.path;
  double uptime_s = static_cast<double>(profile.duration_ns) / 1e9;
  if (options.older_than_s.has_value()) {
    report.older_than_s = *options.older_than_s;
  } else if (uptime_s > kDefaultOlderThanSeconds) {
    report.older_than_s = kDefaultOlderThanSeconds;
  }
  Builder builder(profile, attribution, &report);
  builder.AddLiveSamples();
  builder.AddVolumes();
  builder.MakeRows();
  builder.Sort(options.older_than_s.has_value() && options.metric == Metric::kLive ? Metric::kOld : options.metric);
  report.guesses = attribution->guesses() && std::any_of(report.modules.begin(), report.modules.end(),
                                                         [](const Row& row) { return row.guessed; });
  // Owners need names only as far as the walk goes; the count of what has none must not depend on that.
  absl::flat_hash_set<uint64_t> raw_frames;
  for (const Site& site : profile.sites) raw_frames.insert(site.frames.begin(), site.frames.end());
  for (uint64_t raw : raw_frames) symbolizer->Resolve(raw);
  report.unresolved_frames = std::max(symbolizer->unresolved_frames(), profile.losses.unresolved_frames);
  report.warnings = report.trust.warnings;
  // A cut stack that shows its owner lost nothing that matters here.
  uint64_t cut = 0;
  for (const SiteRow& row : report.sites) cut += row.truncated && row.unattributed ? row.tally.samples : 0;
  if (static_cast<double>(cut) > kMaxLossShare * static_cast<double>(profile.recorded_samples)) {
    double percent = 100 * static_cast<double>(cut) / static_cast<double>(profile.recorded_samples);
    report.warnings.push_back(
        absl::StrCat(FormatShare(percent, 0), " of the samples have a cut stack without an owner in it"));
  }
  if (report.guesses) {
    report.warnings.push_back("owners are guessed from package and library names: no rules file was given");
  }
  AddSymbolWarnings(symbolizer->warnings(), &report.warnings);
  return report;
}

}  // namespace cadastre
