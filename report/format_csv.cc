#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "report/csv_cell.h"
#include "report/format.h"
#include "report/json_writer.h"
#include "report/stack_texts.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

// Of a thread only what is live is known: the other cells are empty.
std::string Numbers(const Report& report, const Tally& tally) {
  auto whole = [](double value) { return static_cast<uint64_t>(std::llround(std::max(0.0, value))); };
  if (report.options.by == GroupBy::kThread) {
    return absl::StrCat(tally.live_bytes, ",", whole(EstimateOf(tally, Metric::kLive).StandardError()), ",",
                        JsonNumber(report.SharePercent(tally)), ",,,", whole(tally.live_count), ",,,",
                        report.older_than_s > 0 ? absl::StrCat(tally.old_bytes) : "", ",", tally.mapped_bytes);
  }
  return absl::StrCat(tally.live_bytes, ",", whole(EstimateOf(tally, Metric::kLive).StandardError()), ",",
                      JsonNumber(report.SharePercent(tally)), ",", tally.allocated_bytes, ",",
                      whole(EstimateOf(tally, Metric::kAllocated).StandardError()), ",", whole(tally.live_count), ",",
                      tally.samples, ",", tally.peak_bytes, ",",
                      report.older_than_s > 0 ? absl::StrCat(tally.old_bytes) : "", ",", tally.mapped_bytes);
}

constexpr char kNumberHeadings[] =
    "live_bytes,live_bytes_stderr,share_pct,allocated_bytes,allocated_bytes_stderr,live_count,samples,peak_bytes,old_"
    "bytes,mapped_bytes";

// Of modules and teams; empty where no earlier snapshot is known.
constexpr char kGrowthHeadings[] = ",since_bytes,since_bytes_stderr,verdict,rate_bytes_per_hour";

std::string GrowthCells(const Row& row) {
  if (!row.growth.has_value()) return ",,,,";
  const std::optional<double>& rate = row.growth->verdict.rate_bytes_per_hour;
  return absl::StrCat(",", std::llround(row.growth->delta_bytes), ",", std::llround(row.growth->delta_error), ",",
                      GrowthKindName(row.growth->verdict.kind), ",",
                      rate.has_value() ? absl::StrCat(std::llround(*rate)) : "");
}

void WriteSites(const Report& report, size_t limit, TextSink sink) {
  StackTexts stacks(report.attribution, ";",
                    [](const Frame& frame, std::string* out) { out->append(ValidUtf8(frame.function)); });
  std::string out = absl::StrCat("module,team,rule,", kNumberHeadings, ",thread,stack\n");
  for (size_t i = 0; i < report.sites.size() && i < limit; i++) {
    const SiteRow& row = report.sites[i];
    absl::StrAppend(&out, CsvCell(row.module), ",", CsvCell(row.team), ",", CsvCell(row.rule), ",",
                    Numbers(report, row.tally), ",", CsvCell(row.thread), ",");
    const size_t stack = out.size();
    stacks.Append(row.site, &out);
    MakeCsvCell(stack, &out);
    out += '\n';
    if (out.size() < kTextPieceBytes) continue;
    sink(out);
    out.clear();
  }
  sink(out);
}

}  // namespace

void WriteCsv(const Report& report, std::optional<size_t> top, TextSink sink) {
  GroupBy by = report.options.by;
  size_t limit = top.value_or(SIZE_MAX);
  if (by == GroupBy::kSite) return WriteSites(report, limit, sink);
  bool modules = by == GroupBy::kModule;
  const bool grows = modules || by == GroupBy::kTeam;
  std::string out = absl::StrCat(GroupName(by), modules ? ",team," : ",", kNumberHeadings, modules ? ",via" : "",
                                 grows ? kGrowthHeadings : "", "\n");
  auto line = [&](const Row& row) {
    absl::StrAppend(&out, CsvCell(row.name), modules ? "," + CsvCell(row.team) : "", ",", Numbers(report, row.tally),
                    modules ? "," + CsvCell(row.via) : "", grows ? GrowthCells(row) : "", "\n");
  };
  const std::vector<Row>& rows = report.RowsBy(by);
  for (size_t i = 0; i < rows.size() && i < limit; i++) line(rows[i]);
  if (modules) line(report.unattributed);
  sink(out);
}

}  // namespace cadastre
