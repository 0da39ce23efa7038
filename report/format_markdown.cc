#include "absl/strings/str_cat.h"
#include "report/format.h"
#include "report/format_growth.h"
#include "report/runtime_facts.h"

namespace cadastre {
namespace {

std::string TallyText(const Tally& tally, Metric metric) {
  Estimate estimate = EstimateOf(tally, metric);
  double error = estimate.StandardError();
  return metric == Metric::kCount ? FormatCount(estimate.value, error) : FormatBytes(estimate.value, error);
}

}  // namespace

std::string FormatMarkdown(const Report& report, std::optional<size_t> top) {
  GroupBy by = report.options.by;
  Metric metric = report.options.metric;
  size_t limit = top.value_or(SIZE_MAX);
  std::string out;
  if (!report.trust.usable) absl::StrAppend(&out, "**", MarkdownCell(report.trust.reason), "**\n\n");
  absl::StrAppend(&out, "**", MarkdownCell(ProgramName(*report.profile)), "** pid ", report.profile->pid, ", ",
                  EndText(*report.profile), ", up ",
                  FormatDuration(static_cast<double>(report.profile->duration_ns) / 1e9), ": ",
                  TallyText(report.totals, metric), " ", MetricName(metric), "\n\n");
  if (report.rss.has_value()) absl::StrAppend(&out, MarkdownCell(report.rss->summary), "\n\n");
  bool modules = by == GroupBy::kModule, sites = by == GroupBy::kSite;
  const bool grown = report.since.has_value() && (modules || by == GroupBy::kTeam);
  const bool judged = grown && report.since->snapshots > 2;
  absl::StrAppend(&out, "| ", sites ? "module" : GroupName(by), modules || sites ? " | team" : "", " | ",
                  MetricName(metric), " | share |", sites ? " stack |" : "",
                  grown ? absl::StrCat(" since ", MarkdownCell(report.since->label), " |") : "",
                  judged ? " verdict |" : "", "\n|---|", modules || sites ? "---|" : "", "--:|--:|",
                  sites ? "---|" : "", grown ? "--:|" : "", judged ? "---|" : "", "\n");
  auto line = [&](const std::string& name, const std::string& team, const Tally& tally, const std::string& stack,
                  const std::optional<RowGrowth>& growth) {
    absl::StrAppend(&out, "| ", MarkdownCell(name), modules || sites ? absl::StrCat(" | ", MarkdownCell(team)) : "",
                    " | ", TallyText(tally, metric), " | ",
                    FormatShare(report.SharePercent(tally), report.ShareErrorPercentOf(tally)), " |",
                    sites ? absl::StrCat(" ", MarkdownCell(stack), " |") : "");
    if (grown)
      absl::StrAppend(&out, " ", growth.has_value() ? DeltaText(growth->delta_bytes, growth->delta_error) : "-", " |");
    if (judged) {
      const std::string verdict = growth.has_value() ? VerdictText(growth->verdict) : "";
      absl::StrAppend(&out, " ", verdict.empty() ? "-" : verdict, " |");
    }
    out += "\n";
  };
  if (sites) {
    for (size_t i = 0; i < report.sites.size() && i < limit; i++) {
      const SiteRow& row = report.sites[i];
      std::string stack;
      for (const Frame* frame : report.FramesOf(row))
        absl::StrAppend(&stack, stack.empty() ? "" : " ← ", frame->function);
      line(row.module, row.team, row.tally, stack, std::nullopt);
    }
  } else {
    const std::vector<Row>& rows = report.RowsBy(by);
    for (size_t i = 0; i < rows.size() && i < limit; i++)
      line(rows[i].guessed ? rows[i].name + " ?" : rows[i].name, rows[i].team, rows[i].tally, "", rows[i].growth);
    if (modules) line(kUnattributedModule, "", report.unattributed.tally, "", report.unattributed.growth);
  }
  if (!sites) {
    for (const SharedRow& shared : report.shared)
      absl::StrAppend(&out, "\n", MarkdownCell(SharedLine(shared, metric)), "\n");
  }
  absl::StrAppend(&out, "\n", MethodLine(report), "; ± is one standard error; a triage aid, not an invoice\n");
  for (const std::string& warning : report.warnings) absl::StrAppend(&out, "\n> ", MarkdownCell(warning), "\n");
  return out;
}

}  // namespace cadastre
