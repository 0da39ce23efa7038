#include "report/growth_snapshot.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/function_name.h"
#include "report/site_identity.h"
#include "report/site_lines.h"

namespace cadastre {
namespace {

constexpr size_t kSnapshotStackWidth = 160;

// Process start times differ by boot and host; a fork or an exec makes another process for us.
std::string ProcessOf(const Profile& profile) {
  return absl::StrCat(profile.host, "/", profile.pid_namespace, "/", profile.pid, "/", profile.process_start_ticks, "/",
                      profile.start_realtime_ns);
}

class Taker {
 public:
  Taker(const Report& report, GrowthSnapshot* snapshot)
      : report_(report), profile_(*report.profile), snapshot_(snapshot), identities_(report.attribution) {}

  void TakeSites() {
    snapshot_->sites.reserve(report_.sites.size());
    numbers_.reserve(report_.sites.size());
    by_row_.reserve(report_.sites.size());
    for (const SiteRow& row : report_.sites) {
      const Estimate estimate = EstimateOf(row.tally, snapshot_->metric);
      if (!(estimate.value > 0)) continue;
      const std::vector<const Frame*> frames = report_.FramesOf(row);
      std::string identity = identities_.Of(row.site, row.owner_frame);
      const std::string module = row.unattributed ? kUnattributedModule : row.module;
      const uint32_t owner = OwnerOf(module, row.team);
      auto [place, inserted] = numbers_.try_emplace({owner, identity}, static_cast<uint32_t>(snapshot_->sites.size()));
      if (inserted) {
        GrowthSite site;
        site.module = module;
        site.team = row.unattributed ? "" : row.team;
        site.guessed = row.guessed;
        site.identity = std::move(identity);
        site.stack = lines_.Of(frames, row.owner_frame, row.telling_frame);
        snapshot_->sites.push_back(std::move(site));
      }
      GrowthSite& site = snapshot_->sites[place->second];
      site.estimate.value += estimate.value;
      site.estimate.variance += estimate.variance;
      site.samples += row.tally.live_samples;
      by_row_[{row.site, owner}] = place->second;
    }
  }

  void TakeSamples() {
    const bool errors = !profile_.exact();
    for (const LiveSample& sample : profile_.live) {
      if (sample.site >= profile_.sites.size()) continue;
      const bool old = snapshot_->cohort_before_ns > 0 && sample.time_ns <= snapshot_->cohort_before_ns;
      if (!errors && !old) continue;
      const Charge& charge = report_.attribution->ChargeOf(sample.site, sample.thread);
      auto [known, inserted] = by_charge_.try_emplace({sample.site, &charge}, 0u);
      if (inserted) {
        const bool unattributed = charge.kind == ChargeKind::kUnattributed;
        auto place = by_row_.find(
            {sample.site, OwnerOf(unattributed ? std::string(kUnattributedModule) : charge.module, charge.team)});
        known->second = place == by_row_.end() ? UINT32_MAX : place->second;
      }
      if (known->second == UINT32_MAX) continue;
      if (old) snapshot_->sites[known->second].cohort_bytes += sample.weight_bytes;
      if (errors) {
        snapshot_->samples.push_back(
            {sample.address, sample.time_ns, sample.size_bytes, sample.weight_bytes, known->second});
      }
    }
  }

 private:
  uint32_t OwnerOf(const std::string& module, const std::string& team) {
    return owners_.try_emplace({module, team}, static_cast<uint32_t>(owners_.size())).first->second;
  }

  const Report& report_;
  const Profile& profile_;
  GrowthSnapshot* snapshot_;
  SiteIdentities identities_;
  SiteLines lines_{kSnapshotStackWidth};
  absl::flat_hash_map<std::pair<std::string, std::string>, uint32_t> owners_;  // module and team, numbered
  absl::flat_hash_map<std::pair<uint32_t, std::string>, uint32_t> numbers_;    // owner, identity → site
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> by_row_;        // site of the profile, owner → site
  absl::flat_hash_map<std::pair<uint32_t, const Charge*>, uint32_t> by_charge_;
};

}  // namespace

std::string RulesHash(const OwnerRules& rules) {
  std::string text;
  for (const Rule& rule : rules.rules) {
    absl::StrAppend(&text, RulePrefixText(rule), "\t", rule.module, "\t", rule.team, "\t", RuleWalkName(rule.walk),
                    rule.kind_given ? "\t+\n" : "\n");
  }
  return StableHash(text);
}

GrowthSnapshot TakeGrowth(const Report& report, const OwnerRules& rules, const std::string& label,
                          const GrowthSnapshot* first) {
  const Profile& profile = *report.profile;
  GrowthSnapshot snapshot;
  snapshot.label = label;
  snapshot.path = profile.path;
  snapshot.time_ns = profile.start_realtime_ns + profile.duration_ns;
  snapshot.uptime_s = static_cast<double>(profile.duration_ns) / 1e9;
  snapshot.process = ProcessOf(profile);
  snapshot.program = std::string(FileName(profile.exe));
  snapshot.metric = report.options.metric;
  snapshot.method = report.method;
  snapshot.interval_bytes = profile.exact() ? 1 : profile.current_interval_bytes;
  snapshot.rules_hash = RulesHash(rules);
  snapshot.builds = BuildsOf(profile);
  snapshot.guesses = report.guesses;
  snapshot.total = EstimateOf(report.totals, snapshot.metric);
  snapshot.warnings = report.trust.warnings;
  if (!report.trust.usable) snapshot.warnings.insert(snapshot.warnings.begin(), report.trust.reason);
  if (first != nullptr && first->process == snapshot.process && snapshot.metric == Metric::kLive)
    snapshot.cohort_before_ns = static_cast<uint64_t>(first->uptime_s * 1e9);
  Taker taker(report, &snapshot);
  taker.TakeSites();
  if (snapshot.metric == Metric::kLive) taker.TakeSamples();
  return snapshot;
}

}  // namespace cadastre
