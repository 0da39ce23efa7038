#include <algorithm>
#include <iterator>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "report/format.h"
#include "report/format_growth.h"
#include "report/function_name.h"
#include "report/runtime_facts.h"
#include "report/stack_line.h"

namespace cadastre {
namespace {

constexpr size_t kHottestStacks = 3;
constexpr size_t kSiteFrames = 16;
constexpr size_t kSinceWidth = 16;

std::string Clock(uint64_t realtime_ns) {
  return absl::FormatTime("%H:%M UTC", absl::FromUnixNanos(static_cast<int64_t>(realtime_ns)), absl::UTCTimeZone());
}

double Seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

// Joins with " · " and breaks before the part that would pass the width.
std::string JoinParts(const std::vector<std::string>& parts) {
  std::string out, line;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    std::string safe = CutEnd(SafeText(part), kTextWidth);
    if (!line.empty() && DisplayWidth(line) + 3 + DisplayWidth(safe) > kTextWidth) {
      absl::StrAppend(&out, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " · ", safe);
  }
  return line.empty() ? out : absl::StrCat(out, line, "\n");
}

std::string EstimateText(const Estimate& estimate, Metric metric) {
  double error = estimate.StandardError();
  return metric == Metric::kCount ? FormatCount(estimate.value, error) : FormatBytes(estimate.value, error);
}

const char* MetricHeading(Metric metric) {
  static constexpr const char* kHeadings[] = {"LIVE", "ALLOCATED", "COUNT", "PEAK", "OLD", "MAPPED"};
  static_assert(std::size(kHeadings) == static_cast<size_t>(Metric::kMapped) + 1);
  return kHeadings[static_cast<int>(metric)];
}

const char* GroupHeading(GroupBy by) {
  static constexpr const char* kHeadings[] = {"MODULE", "TEAM", "LIBRARY", "SITE", "THREAD", "HOLDER"};
  return kHeadings[static_cast<int>(by)];
}

std::string OlderText(double seconds) {
  if (seconds >= 3600 && static_cast<int64_t>(seconds) % 3600 == 0)
    return absl::StrCat(">", static_cast<int64_t>(seconds) / 3600, " H");
  if (seconds >= 60 && static_cast<int64_t>(seconds) % 60 == 0)
    return absl::StrCat(">", static_cast<int64_t>(seconds) / 60, " MIN");
  return absl::StrCat(">", static_cast<int64_t>(seconds), " S");
}

std::string TextShare(const Report& report, const Tally& tally) {
  return FormatShare(report.SharePercent(tally), report.ShareErrorPercentOf(tally));
}

class TextFormat {
 public:
  TextFormat(const Report& report, const TextOptions& options)
      : report_(report), profile_(*report.profile), options_(options), metric_(report.options.metric) {}

  std::string Print() {
    if (!report_.trust.usable)
      absl::StrAppend(&out_, options_.style.Error(CutEnd(SafeText(report_.trust.reason), kTextWidth)), "\n");
    Headline();
    TotalsLine();
    if (options_.brief) {
      BriefTable();
    } else if (report_.options.by == GroupBy::kSite) {
      Sites();
    } else {
      Table();
      for (const SharedRow& shared : report_.shared) Wrapped("", SharedLine(shared, metric_), /*warning=*/false);
    }
    out_ += JoinParts(absl::StrSplit(MethodLine(report_), " · "));
    if (!options_.brief) {
      if (report_.options.by != GroupBy::kSite) HottestStacks();
      Suggestions();
    }
    for (const std::string& warning : report_.warnings) Wrapped("warning: ", warning, /*warning=*/true);
    if (!options_.brief) {
      out_ += "± is one standard error; a triage aid, not an invoice\n";
      if (report_.rules_path.empty()) NextRules();
      if (report_.since.has_value()) NextDiff();
    }
    return out_;
  }

 private:
  void Headline() {
    std::vector<std::string> parts;
    std::string program = ProgramName(profile_);
    if (report_.runtime.empty()) {
      parts.push_back(program);
    } else {
      bool named = absl::StartsWith(report_.runtime, program);
      parts.push_back(named ? report_.runtime : absl::StrCat(program, " (", report_.runtime, ")"));
    }
    parts.push_back(absl::StrCat("pid ", profile_.pid));
    if (!profile_.host.empty()) parts.push_back(absl::StrCat("host ", profile_.host));
    if (!profile_.labels.empty()) parts.push_back(absl::StrReplaceAll(profile_.labels, {{":", " "}, {"\n", " · "}}));
    parts.push_back(AllocatorName(profile_));
    // Of what is lost the last sample is all that is known.
    const char* up = profile_.end == EndState::kLost ? "up at least " : "up ";
    parts.push_back(absl::StrCat(up, FormatDuration(Seconds(profile_.duration_ns))));
    if (profile_.is_snapshot) {
      uint64_t window_ns = profile_.snapshot_end_realtime_ns - profile_.snapshot_begin_realtime_ns;
      parts.push_back(absl::StrCat("snapshot ", profile_.label, profile_.label.empty() ? "" : " ", "at ",
                                   Clock(profile_.snapshot_begin_realtime_ns), ", copied in ",
                                   FormatDuration(Seconds(window_ns))));
    } else {
      parts.push_back(EndText(profile_));
    }
    out_ += options_.style.Bold(JoinParts(parts));
  }

  void TotalsLine() {
    std::vector<std::string> parts;
    if (report_.rss.has_value()) {
      out_ += JoinParts(absl::StrSplit(report_.rss->summary, " · "));
    } else if (profile_.rss_bytes > 0) {
      parts.push_back(
          absl::StrCat("RSS ", FormatBytes(static_cast<double>(profile_.rss_bytes)),
                       profile_.is_snapshot ? absl::StrCat(" at ", Clock(profile_.snapshot_begin_realtime_ns)) : ""));
    }
    if (profile_.peak_rss_bytes > 0)
      parts.push_back(absl::StrCat("peak RSS ", FormatBytes(static_cast<double>(profile_.peak_rss_bytes))));
    const Tally& totals = report_.totals;
    const char* at_least = profile_.losses.dropped_samples > 0 ? "≥ " : "";
    parts.push_back(absl::StrCat("native live ", at_least,
                                 EstimateText(EstimateOf(totals, Metric::kLive), Metric::kLive), " in ",
                                 EstimateText(EstimateOf(totals, Metric::kCount), Metric::kCount), " blocks"));
    if (totals.mapped_bytes > 0)
      parts.push_back(absl::StrCat("mapped ", FormatBytes(static_cast<double>(totals.mapped_bytes))));
    if (totals.peak_bytes > 0) {
      std::string when = profile_.peak_ns > 0 ? absl::StrCat(" at ", FormatDuration(Seconds(profile_.peak_ns))) : "";
      parts.push_back(absl::StrCat("peak ", at_least, FormatBytes(static_cast<double>(totals.peak_bytes)), when));
    }
    parts.push_back(
        absl::StrCat("allocated ", at_least, EstimateText(EstimateOf(totals, Metric::kAllocated), Metric::kAllocated)));
    out_ += JoinParts(parts);
  }

  std::string NameOf(const Row& row) const {
    if (row.name.empty()) {
      return report_.options.by == GroupBy::kTeam     ? "(no team)"
             : report_.options.by == GroupBy::kThread ? "(not known)"
                                                      : "(none)";
    }
    // A guess is marked where it is read, not in a footnote alone.
    return row.guessed ? absl::StrCat(row.name, " ?") : row.name;
  }

  std::string OldText(const Tally& tally) const {
    if (report_.older_than_s <= 0 || tally.live_bytes == 0) return "";
    double percent = 100.0 * static_cast<double>(tally.old_bytes) / static_cast<double>(tally.live_bytes);
    double error = ShareErrorPercent(EstimateOf(tally, Metric::kOld), EstimateOf(tally, Metric::kLive));
    return FormatShare(percent, error);
  }

  static std::string SinceText(const Row& row) {
    return row.growth.has_value() ? DeltaText(row.growth->delta_bytes, row.growth->delta_error) : "-";
  }

  static std::string JudgedText(const Row& row) {
    const std::string text = row.growth.has_value() ? VerdictText(row.growth->verdict) : "";
    return text.empty() ? "-" : text;
  }

  void Table() {
    GroupBy by = report_.options.by;
    bool modules = by == GroupBy::kModule;
    std::vector<Column> columns = {{GroupHeading(by), Align::kLeft, true}};
    if (modules) columns.push_back({"TEAM", Align::kLeft, true});
    columns.push_back({MetricHeading(metric_)});
    // Teams and modules are compared with earlier snapshots.
    const bool grown = report_.since.has_value() && (modules || by == GroupBy::kTeam);
    const bool judged = grown && report_.since->snapshots > 2;
    columns.push_back({grown ? absl::StrCat("SINCE ", CutEnd(SafeText(report_.since->label), kSinceWidth)) : ""});
    columns.push_back({"SHARE", Align::kRight});
    columns.push_back({report_.older_than_s > 0 ? OlderText(report_.older_than_s) : "", Align::kRight});
    if (modules) columns.push_back({"VIA", Align::kLeft, true});
    columns.push_back({"VERDICT"});
    TextTable table(columns);
    auto add = [&](const Row& row, const std::string& name) {
      std::vector<std::string> cells = {name};
      if (modules) cells.push_back(row.team.empty() ? "-" : row.team);
      cells.push_back(EstimateText(EstimateOf(row.tally, metric_), metric_));
      cells.push_back(grown ? SinceText(row) : "");
      cells.push_back(TextShare(report_, row.tally));
      cells.push_back(OldText(row.tally));
      if (modules) cells.push_back(row.via);
      cells.push_back(judged ? JudgedText(row) : "");
      table.AddRow(cells);
    };
    std::vector<Row> rows = report_.RowsBy(by);
    // Guesses are many, and one without a byte of what is shown says nothing. (A module that a rule names is at zero.)
    std::erase_if(rows, [this](const Row& row) { return row.guessed && EstimateOf(row.tally, metric_).value <= 0; });
    for (size_t i = 0; i < rows.size() && i < options_.top; i++) add(rows[i], NameOf(rows[i]));
    if (rows.size() > options_.top) {
      Row rest;
      for (size_t i = options_.top; i < rows.size(); i++) rest.tally.Add(rows[i].tally);
      add(rest, absl::StrCat(rows.size() - options_.top, " more"));
    }
    if (modules) add(report_.unattributed, report_.unattributed.name);
    out_ += table.Print(kTextWidth, options_.style);
    if (!modules && by != GroupBy::kTeam && by != GroupBy::kHolder) {
      out_ += JoinParts(
          {absl::StrCat("unattributed ", EstimateText(EstimateOf(report_.unattributed.tally, metric_), metric_), " (",
                        TextShare(report_, report_.unattributed.tally), ")")});
    }
  }

  void BriefTable() {
    TextTable table({{"MODULE", Align::kLeft, true},
                     {"TEAM", Align::kLeft, true},
                     {"AT THE PEAK"},
                     {"AT THE END"},
                     {"VIA", Align::kLeft, true}});
    auto add = [&](const Row& row, const std::string& name) {
      table.AddRow({name, row.team.empty() ? "-" : row.team,
                    EstimateText(EstimateOf(row.tally, Metric::kPeak), Metric::kPeak),
                    EstimateText(EstimateOf(row.tally, Metric::kLive), Metric::kLive), row.via});
    };
    for (size_t i = 0; i < report_.modules.size() && i < options_.top; i++)
      add(report_.modules[i], NameOf(report_.modules[i]));
    if (report_.modules.size() > options_.top) {
      Row rest;
      for (size_t i = options_.top; i < report_.modules.size(); i++) rest.tally.Add(report_.modules[i].tally);
      add(rest, absl::StrCat(report_.modules.size() - options_.top, " more"));
    }
    add(report_.unattributed, absl::StrCat("unattributed (", TextShare(report_, report_.unattributed.tally), ")"));
    out_ += table.Print(kTextWidth, options_.style);
  }

  std::string RuleLine(const SiteRow& row) const {
    std::vector<std::string> parts;
    if (!row.rule.empty()) {
      parts.push_back(
          absl::StrCat(row.guessed ? "" : "rule ", row.rule, row.team.empty() ? "" : absl::StrCat(" → ", row.team)));
    }
    if (!row.thread.empty()) {
      parts.push_back(absl::StrCat("thread ", row.thread,
                                   row.created_by.empty() ? "" : absl::StrCat(", created by ", row.created_by)));
    }
    return absl::StrJoin(parts, " · ");
  }

  std::string StackOf(const SiteRow& row, size_t width) const {
    return StackLine(report_.FramesOf(row), row.owner_frame, row.telling_frame, width);
  }

  bool RowsReadTheSame(const SiteRow& a, const SiteRow& b) const {
    if (a.owner_frame != b.owner_frame || a.rule != b.rule) return false;
    const std::vector<const Frame*> left = report_.FramesOf(a), right = report_.FramesOf(b);
    return ReadTheSame(left, ShownFrames(left.size(), a.owner_frame, a.telling_frame), right,
                       ShownFrames(right.size(), b.owner_frame, b.telling_frame));
  }

  // The heaviest site of each module, with what reads the same.
  void HottestStacks() {
    std::vector<SiteRow> heads;
    std::map<std::string, size_t> head_of;  // module → its place in heads
    for (const SiteRow& row : report_.sites) {
      if (EstimateOf(row.tally, metric_).value <= 0) continue;
      auto [place, inserted] = head_of.try_emplace(row.module, heads.size());
      if (inserted) {
        heads.push_back(row);
      } else if (RowsReadTheSame(heads[place->second], row)) {
        heads[place->second].tally.Add(row.tally);
      }
    }
    std::stable_sort(heads.begin(), heads.end(), [this](const SiteRow& a, const SiteRow& b) {
      return EstimateOf(a.tally, metric_).value > EstimateOf(b.tally, metric_).value;
    });
    if (heads.size() > kHottestStacks) heads.resize(kHottestStacks);
    for (const SiteRow& row : heads) {
      Estimate estimate = EstimateOf(row.tally, metric_);
      std::string head =
          absl::StrCat(metric_ == Metric::kCount ? FormatCount(estimate.value) : FormatBytes(estimate.value), ": ");
      absl::StrAppend(&out_, head, StackOf(row, kTextWidth - DisplayWidth(head)), "\n");
      std::string rule = RuleLine(row);
      if (!rule.empty())
        absl::StrAppend(&out_, options_.style.Faint(CutEnd(SafeText(absl::StrCat("  ", rule)), kTextWidth)), "\n");
    }
  }

  void Sites() {
    size_t count = 0;
    for (const SiteRow& row : report_.sites) {
      if (count++ >= options_.top) break;
      std::string owner = row.module;
      if (row.guessed) owner += " ?";
      if (!row.team.empty()) absl::StrAppend(&owner, " · ", row.team);
      std::string head = absl::StrCat(EstimateText(EstimateOf(row.tally, metric_), metric_), " (",
                                      TextShare(report_, row.tally), ") ", owner);
      if (row.tally.live_count > 0) {
        absl::StrAppend(&head, " · ", EstimateText(EstimateOf(row.tally, Metric::kCount), Metric::kCount), " blocks");
      }
      std::string rule = RuleLine(row);
      absl::StrAppend(&out_, options_.style.Bold(CutEnd(SafeText(head), kTextWidth)), "\n");
      if (!rule.empty())
        absl::StrAppend(&out_, options_.style.Faint(CutEnd(SafeText(absl::StrCat("  ", rule)), kTextWidth)), "\n");
      std::vector<const Frame*> frames = report_.FramesOf(row);
      size_t shown = 0;
      for (const Frame* frame : frames) {
        if (shown++ >= kSiteFrames) {
          absl::StrAppend(&out_, "    … ", frames.size() - kSiteFrames, " more\n");
          break;
        }
        bool owned = static_cast<int>(shown) - 1 == row.owner_frame;
        absl::StrAppend(&out_, owned ? "  * " : "    ", CutMiddle(SafeText(ShortFrame(*frame)), kTextWidth - 4), "\n");
      }
      if (row.truncated) out_ += "    [cut]\n";
    }
    if (report_.sites.size() > options_.top)
      absl::StrAppend(&out_, report_.sites.size() - options_.top, " more sites\n");
    out_ +=
        JoinParts({absl::StrCat("unattributed ", EstimateText(EstimateOf(report_.unattributed.tally, metric_), metric_),
                                " (", TextShare(report_, report_.unattributed.tally), ")")});
  }

  void Suggestions() {
    if (report_.suggestions.empty()) return;
    out_ += "rules that would give the unattributed memory an owner (fill in module and team):\n";
    for (const RuleSuggestion& suggestion : report_.suggestions) {
      bool volume = metric_ == Metric::kAllocated;
      std::string line = absl::StrCat("  ", suggestion.prefix, ",MODULE,TEAM");
      std::string amount =
          FormatBytes(static_cast<double>(volume ? suggestion.allocated_bytes : suggestion.live_bytes));
      absl::StrAppend(&out_, CutMiddle(SafeText(line), kTextWidth - 14), "  # ", amount, "\n");
    }
  }

  void Wrapped(const std::string& head, const std::string& text, bool warning) {
    std::string safe = SafeText(absl::StrCat(head, text));
    while (!safe.empty()) {
      std::string line = safe;
      if (DisplayWidth(safe) > kTextWidth) {
        size_t cut = safe.rfind(' ', kTextWidth);
        if (cut == std::string::npos || cut <= head.size()) {
          line = CutMiddle(safe, kTextWidth);
          safe.clear();
        } else {
          line = safe.substr(0, cut);
          safe = absl::StrCat("  ", safe.substr(cut + 1));
        }
      } else {
        safe.clear();
      }
      absl::StrAppend(&out_, warning ? options_.style.Warning(line) : line, "\n");
    }
  }

  void NextRules() {
    std::string argument = report_.options.profile_argument.empty() ? profile_.path : report_.options.profile_argument;
    absl::StrAppend(&out_, "next: cadastre rules init ", SafeText(argument), " > owners.csv\n");
  }

  void NextDiff() {
    const std::string argument =
        report_.options.profile_argument.empty() ? profile_.path : report_.options.profile_argument;
    absl::StrAppend(&out_, "next: cadastre diff ", SafeText(report_.since->path), " ", SafeText(argument),
                    " --by site\n");
  }

  const Report& report_;
  const Profile& profile_;
  const TextOptions& options_;
  Metric metric_;
  std::string out_;
};

}  // namespace

std::string FormatText(const Report& report, const TextOptions& options) { return TextFormat(report, options).Print(); }

}  // namespace cadastre
