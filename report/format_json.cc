#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "report/format.h"
#include "report/frame_json.h"
#include "report/json_writer.h"
#include "report/runtime_facts.h"
#include "report/stack_texts.h"

namespace cadastre {
namespace {

uint64_t Rounded(double value) { return value > 0 ? static_cast<uint64_t>(std::llround(value)) : 0; }
uint64_t LiveError(const Tally& tally) { return Rounded(EstimateOf(tally, Metric::kLive).StandardError()); }

std::string ProfileJson(const Report& report) {
  const Profile& profile = *report.profile;
  std::vector<std::string> words;
  for (const std::string& word : profile.command) words.push_back(JsonString(word));
  std::string command = "[";
  for (const std::string& word : words) absl::StrAppend(&command, command.size() > 1 ? ", " : "", word);
  JsonObject labels;
  for (absl::string_view pair : absl::StrSplit(profile.labels, '\n', absl::SkipEmpty())) {
    std::pair<std::string, std::string> label = absl::StrSplit(pair, absl::MaxSplits(':', 1));
    std::string key = JsonString(label.first);
    labels.Text(key.substr(1, key.size() - 2), label.second);
  }
  JsonObject object;
  object.Text("path", profile.path)
      .Integer("pid", profile.pid)
      .TextOrNull("exe", profile.exe)
      .Raw("command", command + "]");
  object.Text("started", TimeText(profile.start_realtime_ns))
      .Number("duration_s", static_cast<double>(profile.duration_ns) / 1e9);
  object.Integer("interval_bytes", profile.interval_bytes).Integer("samples", profile.recorded_samples);
  object.IntegerOrNull("rss_bytes", profile.rss_bytes)
      .TextOrNull("host", profile.host)
      .TextOrNull("runtime", report.runtime);
  object.TextOrNull("allocator", profile.allocator).Raw("labels", labels.Done());
  object.Text("end", EndWord(profile)).Text("method", report.method);
  // Beyond the first published keys:
  object.IntegerOrNull("peak_rss_bytes", profile.peak_rss_bytes);
  if (profile.end == EndState::kExit && profile.end_status_known) {
    object.Raw("exit_status", absl::StrCat(profile.end_value));
  } else {
    object.Null("exit_status");
  }
  object.Integer("current_interval_bytes", profile.current_interval_bytes);
  object.Bool("paused", profile.pauses.now).Integer("pauses", profile.pauses.finished + (profile.pauses.now ? 1 : 0));
  const OomKill oom = OomKillOf(profile);
  object.TextOrNull("oom", oom == OomKill::kCounted ? "counted" : oom == OomKill::kLikely ? "likely" : "");
  object.IntegerOrNull("memory_used_bytes", profile.memory_note.used_bytes)
      .IntegerOrNull("memory_limit_bytes", profile.memory_note.limit_bytes);
  object.TextOrNull("snapshot", profile.is_snapshot ? profile.label : "");
  if (profile.is_snapshot) {
    object.Number("snapshot_window_s",
                  static_cast<double>(profile.snapshot_end_realtime_ns - profile.snapshot_begin_realtime_ns) / 1e9);
  } else {
    object.Null("snapshot_window_s");
  }
  return object.Done();
}

std::string TotalsJson(const Report& report) {
  const Tally& totals = report.totals;
  JsonObject object;
  object.Integer("live_bytes", totals.live_bytes).Integer("live_bytes_stderr", LiveError(totals));
  object.Integer("allocated_bytes", totals.allocated_bytes);
  object.Integer("allocated_bytes_stderr", Rounded(EstimateOf(totals, Metric::kAllocated).StandardError()));
  object.Integer("live_count", Rounded(totals.live_count));
  object.Integer("live_count_stderr", Rounded(EstimateOf(totals, Metric::kCount).StandardError()));
  object.Integer("peak_bytes", totals.peak_bytes).Integer("mapped_bytes", totals.mapped_bytes);
  return object.Done();
}

void AddTally(const Report& report, const Tally& tally, JsonObject* object) {
  object->Integer("live_bytes", tally.live_bytes).Integer("live_bytes_stderr", LiveError(tally));
  object->Number("share_pct", report.SharePercent(tally));
  object->Integer("allocated_bytes", tally.allocated_bytes);
  object->Integer("allocated_bytes_stderr", Rounded(EstimateOf(tally, Metric::kAllocated).StandardError()));
  object->Integer("live_count", Rounded(tally.live_count)).Integer("samples", tally.samples);
  object->Integer("live_samples", tally.live_samples).Integer("peak_bytes", tally.peak_bytes);
  object->Integer("mapped_bytes", tally.mapped_bytes);
  if (report.older_than_s > 0) {
    object->Integer("old_bytes", tally.old_bytes);
  } else {
    object->Null("old_bytes");
  }
}

void AddGrowthJson(const Row& row, JsonObject* object) {
  if (!row.growth.has_value()) {
    for (const char* key : {"since_bytes", "since_bytes_stderr", "verdict", "rate_bytes_per_hour", "reason"})
      object->Null(key);
    return;
  }
  const RowGrowth& growth = *row.growth;
  object->Raw("since_bytes", absl::StrCat(std::llround(growth.delta_bytes)));
  object->Integer("since_bytes_stderr", Rounded(growth.delta_error));
  object->TextOrNull("verdict", GrowthKindName(growth.verdict.kind));
  const std::optional<double>& rate = growth.verdict.rate_bytes_per_hour;
  object->Raw("rate_bytes_per_hour", rate.has_value() ? absl::StrCat(std::llround(*rate)) : "null");
  object->TextOrNull("reason", growth.verdict.reason);
}

std::string ModuleJson(const Report& report, const Row& row) {
  JsonObject object;
  object.Text("module", row.name).TextOrNull("team", row.team);
  AddTally(report, row.tally, &object);
  object.TextOrNull("via", row.via).Bool("guessed", row.guessed).Integer("pooled_bytes", row.pooled_bytes);
  AddGrowthJson(row, &object);
  return object.Done();
}

std::string NamedJson(const Report& report, const char* key, const Row& row) {
  JsonObject object;
  object.TextOrNull(key, row.name);
  AddTally(report, row.tally, &object);
  return object.Done();
}

std::string TeamJson(const Report& report, const Row& row) {
  JsonObject object;
  object.TextOrNull("team", row.name);
  AddTally(report, row.tally, &object);
  AddGrowthJson(row, &object);
  return object.Done();
}

// The snapshot that growth is counted from.
std::string SinceJson(const Report& report) {
  if (!report.since.has_value()) return "null";
  JsonObject object;
  object.Text("label", report.since->label).Text("path", report.since->path);
  object.Text("time", TimeText(report.since->time_ns)).Integer("snapshots", report.since->snapshots);
  return object.Done();
}

std::string SharedJson(const Report& report, const SharedRow& shared) {
  std::vector<std::string> creators;
  for (const Row& row : shared.creators) creators.push_back(NamedJson(report, "module", row));
  JsonObject object;
  object.Text("holder", shared.holder).TextOrNull("team", shared.team).Bool("pool", shared.pool);
  AddTally(report, shared.tally, &object);
  object.Raw("created_by", JsonArray(creators, "    "));
  return object.Done();
}

// Threads know what is live; how much each has allocated is not kept.
std::string ThreadJson(const Report& report, const Row& row) {
  JsonObject object;
  object.TextOrNull("thread", row.name)
      .Integer("live_bytes", row.tally.live_bytes)
      .Integer("live_bytes_stderr", LiveError(row.tally));
  object.Integer("live_count", Rounded(row.tally.live_count)).Integer("live_samples", row.tally.live_samples);
  return object.Done();
}

void AppendSiteJson(const SiteRow& row, StackTexts* stacks, std::string* out) {
  static constexpr const char* kKinds[] = {"malloc", "mmap", "stack"};
  JsonObject object(out);
  if (row.unattributed) {
    object.Null("module");
  } else {
    object.Text("module", row.module);
  }
  object.TextOrNull("team", row.team).TextOrNull("rule", row.rule);
  object.Integer("live_bytes", row.tally.live_bytes).Integer("live_bytes_stderr", LiveError(row.tally));
  object.Integer("allocated_bytes", row.tally.allocated_bytes).Integer("live_count", Rounded(row.tally.live_count));
  object.Integer("samples", row.tally.samples)
      .TextOrNull("thread", row.thread)
      .Text("kind", kKinds[static_cast<int>(row.kind)]);
  object.Value("frames") += '[';
  stacks->Append(row.site, out);
  *out += ']';
  object.Integer("peak_bytes", row.tally.peak_bytes).TextOrNull("via", row.via);
  object.Integer("mapped_bytes", row.tally.mapped_bytes);
  object.Bool("truncated", row.truncated).TextOrNull("created_by", row.created_by);
  object.Text("holder", row.holder).Bool("pooled", row.pooled);
  if (row.owner_frame >= 0) {
    object.Integer("owner_frame", row.owner_frame);
  } else {
    object.Null("owner_frame");
  }
  object.Done();
}

std::string SuggestionsJson(const Report& report) {
  std::vector<std::string> suggestions;
  for (const RuleSuggestion& suggestion : report.suggestions) {
    JsonObject object;
    suggestions.push_back(object.Text("prefix", suggestion.prefix).Integer("live_bytes", suggestion.live_bytes).Done());
  }
  return JsonArray(suggestions, "    ");
}

std::string LossesJson(const Report& report) {
  const Losses& losses = report.profile->losses;
  JsonObject lost;
  lost.Integer("dropped_samples", losses.dropped_samples).Integer("truncated_stacks", losses.truncated_stacks);
  lost.Integer("unresolved_frames", report.unresolved_frames).Integer("volume_dropped", losses.volume_dropped);
  lost.Integer("sites_overflowed", losses.sites_overflowed).Integer("missed_frees", losses.missed_frees);
  lost.Integer("nested_skipped", losses.nested_skipped).Integer("torn_records", losses.torn_records);
  lost.Integer("mappings_full", losses.mappings_full).Integer("mapping_events_lost", losses.mapping_events_lost);
  return lost.Done();
}

}  // namespace

void WriteJson(const Report& report, std::optional<size_t> top, TextSink sink) {
  JsonObject unattributed;
  unattributed.Integer("live_bytes", report.unattributed.tally.live_bytes);
  unattributed.Number("share_pct", report.SharePercent(report.unattributed.tally));
  unattributed.Integer("live_bytes_stderr", LiveError(report.unattributed.tally));
  unattributed.Integer("allocated_bytes", report.unattributed.tally.allocated_bytes);
  unattributed.Integer("live_count", Rounded(report.unattributed.tally.live_count));
  unattributed.Integer("peak_bytes", report.unattributed.tally.peak_bytes);
  unattributed.Raw("suggested_rules", SuggestionsJson(report));
  AddGrowthJson(report.unattributed, &unattributed);

  std::vector<absl::string_view> warnings(report.warnings.begin(), report.warnings.end());
  if (!report.trust.usable) warnings.insert(warnings.begin(), report.trust.reason);
  std::vector<const Row*> teams;
  for (const Row& row : report.teams) {
    if (!row.unattributed || row.name != kUnattributedModule) teams.push_back(&row);
  }
  const size_t shown = std::min(report.sites.size(), top.value_or(report.sites.size()));
  StackTexts stacks(report.attribution, ", ", AppendFrameJson);

  JsonStream out(sink);
  out.Member("schema", "\"cadastre.report/1\"");
  out.Member("usable", report.trust.usable ? "true" : "false");
  out.Member("metric", JsonString(MetricName(report.options.metric)));
  out.Member("older_than_s", report.older_than_s > 0 ? JsonNumber(report.older_than_s) : "null");
  out.Member("rules", report.rules_path.empty() ? "null" : JsonString(report.rules_path));
  out.Member("profile", ProfileJson(report));
  out.Member("rss", report.rss.has_value() ? LedgerSummaryJson(*report.rss) : "null");
  out.Member("totals", TotalsJson(report));
  out.Member("unattributed", unattributed.Done());
  out.Member("since", SinceJson(report));
  out.Array("modules", report.modules, [&](const Row& row) { return ModuleJson(report, row); });
  out.Array("teams", teams, [&](const Row* row) { return TeamJson(report, *row); });
  out.Array("libraries", report.libraries, [&](const Row& row) { return NamedJson(report, "library", row); });
  out.Array("threads", report.threads, [&](const Row& row) { return ThreadJson(report, row); });
  out.Array("holders", report.holders, [&](const Row& row) { return NamedJson(report, "holder", row); });
  out.Array("shared", report.shared, [&](const SharedRow& row) { return SharedJson(report, row); });
  out.ArrayOf("sites", absl::MakeConstSpan(report.sites.data(), shown),
              [&](const SiteRow& row, std::string* to) { AppendSiteJson(row, &stacks, to); });
  out.Member("losses", LossesJson(report));
  out.Array("warnings", warnings, JsonString);
}

}  // namespace cadastre
