#include "report/format_growth.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "report/csv_cell.h"
#include "report/estimate.h"
#include "report/format.h"
#include "report/json_writer.h"

namespace cadastre {
namespace {

constexpr size_t kShownReasons = 5, kShownSites = 3;

const std::vector<GrowthRow>& RowsOf(const Growth& growth, GrowthBy by) {
  return by == GrowthBy::kTeam ? growth.teams : by == GrowthBy::kSite ? growth.sites : growth.modules;
}

std::string GrowthRowName(const GrowthRow& row) { return row.name.empty() ? "(no team)" : row.name; }

// The verdict with all that belongs to it.
std::string ReasonOf(const GrowthRow& row) {
  std::string text = VerdictText(row.verdict);
  if (row.rate_per_1000_requests.has_value())
    absl::StrAppend(&text, ", ", FormatBytes(std::fabs(*row.rate_per_1000_requests)), " per 1,000 requests");
  return absl::StrCat(text, row.verdict.reason.empty() ? "" : ": ", row.verdict.reason);
}

std::string SignedNumber(double value) { return absl::StrCat(static_cast<int64_t>(std::llround(value))); }

enum class Which { kAll, kChanged };

// By how much: what a reader looks at first comes first. `left`: how many more there are.
std::vector<const GrowthRow*> ShownRows(const std::vector<GrowthRow>& rows, size_t top, size_t* left,
                                        Which which = Which::kAll) {
  std::vector<const GrowthRow*> shown;
  for (const GrowthRow& row : rows) {
    const bool nothing = std::all_of(row.bytes.begin(), row.bytes.end(), [](double bytes) { return bytes == 0; });
    if (!nothing && (which == Which::kAll || row.delta_bytes() != 0)) shown.push_back(&row);
  }
  ListedBefore listed_before;
  auto before = [&](const GrowthRow* a, const GrowthRow* b) {
    const double left_bytes = std::fabs(a->delta_bytes()), right_bytes = std::fabs(b->delta_bytes());
    return left_bytes != right_bytes ? left_bytes > right_bytes : listed_before(*a, *b);
  };
  *left = shown.size() > top ? shown.size() - top : 0;
  if (*left == 0) {
    std::sort(shown.begin(), shown.end(), before);
  } else {
    std::partial_sort(shown.begin(), shown.begin() + static_cast<ptrdiff_t>(top), shown.end(), before);
    shown.resize(top);
  }
  return shown;
}

// What share of all growth (or of all shrinking) it has.
std::string ShareOfGrowth(const std::vector<GrowthRow>& rows, const GrowthRow& row) {
  double sum = 0;
  for (const GrowthRow& other : rows) {
    if (other.delta_bytes() * row.delta_bytes() > 0) sum += other.delta_bytes();
  }
  if (sum == 0) return "";
  const double share = row.delta_bytes() / sum;
  return FormatShare(100 * share, 100 * row.delta_error / std::fabs(sum));
}

bool HasBaselineFirst(const Growth& growth) { return growth.moments.front().baseline; }

// A baseline holds the larger sites only: one that is not in it may have been there.
std::string MarkOf(const Growth& growth, const GrowthRow& row) {
  if (row.identity.empty() || HasBaselineFirst(growth)) return "";
  return row.is_new() ? "new" : row.is_gone() ? "gone" : "";
}

std::string Headline(const Growth& growth) {
  const Growth::Moment &first = growth.moments.front(), &last = growth.moments.back();
  std::string text = absl::StrCat(first.label, " → ", last.label);
  if (growth.moments.size() > 2) absl::StrAppend(&text, ", ", growth.moments.size(), " snapshots");
  if (first.time_ns > 0 && last.time_ns > first.time_ns) {
    absl::StrAppend(&text, ", ", FormatDuration(static_cast<double>(last.time_ns - first.time_ns) / 1e9), " apart");
  }
  absl::StrAppend(&text, growth.one_process ? ", one process" : "");
  return text;
}

std::string MethodText(const Growth& growth) {
  const Growth::Moment& last = growth.moments.back();
  return absl::StrCat(last.method, last.interval_bytes > 1 ? ", " + FormatInterval(last.interval_bytes) : "");
}

void AppendNumbers(const std::vector<double>& values, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < values.size(); i++)
    absl::StrAppend(out, i > 0 ? ", " : "", static_cast<int64_t>(std::llround(values[i])));
  *out += ']';
}

void AppendRowJson(const Growth& growth, const GrowthRow& row, GrowthBy by, std::string* out) {
  JsonObject object(out);
  if (by == GrowthBy::kTeam) {
    object.TextOrNull("team", row.name);
  } else {
    object.Text("module", by == GrowthBy::kSite ? row.module : row.name).TextOrNull("team", row.team);
  }
  AppendNumbers(row.bytes, &object.Value("bytes"));
  AppendNumbers(row.errors, &object.Value("stderr"));
  object.Raw("delta_bytes", SignedNumber(row.delta_bytes())).Raw("delta_stderr", SignedNumber(row.delta_error));
  object.TextOrNull("verdict", GrowthKindName(row.verdict.kind));
  if (row.verdict.rate_bytes_per_hour.has_value()) {
    object.Raw("rate_bytes_per_hour", SignedNumber(*row.verdict.rate_bytes_per_hour));
    object.Raw("rate_bytes_per_hour_stderr", SignedNumber(row.verdict.rate_error));
  } else {
    object.Null("rate_bytes_per_hour").Null("rate_bytes_per_hour_stderr");
  }
  object.TextOrNull("reason", row.verdict.reason);
  if (row.rate_per_1000_requests.has_value()) {
    object.Raw("rate_bytes_per_1000_requests", SignedNumber(*row.rate_per_1000_requests));
  } else {
    object.Null("rate_bytes_per_1000_requests");
  }
  if (row.cohort_bytes.has_value()) {
    object.Integer("cohort_bytes", *row.cohort_bytes);
  } else {
    object.Null("cohort_bytes");
  }
  if (by == GrowthBy::kSite) {
    object.Text("identity", row.identity).Text("stack", row.stack.Text());
    const std::string mark = MarkOf(growth, row);
    object.TextOrNull("change", mark);
  }
  object.Done();
}

std::string MomentJson(const Growth::Moment& moment) {
  JsonObject object;
  object.Text("label", moment.label).TextOrNull("time", moment.time_ns > 0 ? TimeText(moment.time_ns) : "");
  object.TextOrNull("path", moment.path)
      .Number("uptime_s", moment.uptime_s)
      .Integer("interval_bytes", moment.interval_bytes);
  object.Text("method", moment.method).Bool("baseline", moment.baseline);
  return object.Done();
}

}  // namespace

std::string DeltaText(double bytes, double error) {
  return absl::StrCat(bytes > 0 || (bytes == 0 && error > 0) ? "+" : "", FormatBytes(bytes, error));
}

std::string VerdictText(const Verdict& verdict) {
  std::string text = GrowthKindName(verdict.kind);
  if (verdict.rate_bytes_per_hour.has_value())
    absl::StrAppend(&text, ", ", FormatBytes(std::fabs(*verdict.rate_bytes_per_hour)), "/h");
  return text;
}

std::string FormatGrowthText(const Growth& growth, GrowthBy by, size_t top, const TextStyle& style) {
  std::string out = style.Bold(CutEnd(SafeText(Headline(growth)), kTextWidth)) + "\n";
  absl::StrAppend(&out, "total ", FormatBytes(growth.total.bytes.front(), growth.total.errors.front()), " → ",
                  FormatBytes(growth.total.bytes.back(), growth.total.errors.back()), ": ",
                  DeltaText(growth.total.delta_bytes(), growth.total.delta_error));
  if (growth.total.cohort_bytes.has_value()) {
    absl::StrAppend(&out, "; of what was there, ", FormatBytes(static_cast<double>(*growth.total.cohort_bytes)),
                    " is still");
  }
  out += "\n";
  const std::vector<GrowthRow>& rows = RowsOf(growth, by);
  const bool cohort = growth.total.cohort_bytes.has_value();
  std::vector<Column> columns = {{by == GrowthBy::kTeam ? "TEAM" : "MODULE", Align::kLeft, true},
                                 {by == GrowthBy::kTeam ? "" : "TEAM", Align::kLeft, true},
                                 {"BEFORE"},
                                 {"NOW"},
                                 {"GROWTH"},
                                 {"SHARE", Align::kRight},
                                 {cohort ? "KEPT" : "", Align::kRight},
                                 {by == GrowthBy::kSite       ? ""
                                  : growth.moments.size() > 2 ? "VERDICT"
                                                              : "",
                                  Align::kLeft, true},
                                 {by == GrowthBy::kSite ? "STACK" : "", Align::kLeft, true}};
  TextTable table(columns);
  size_t left = 0;
  const std::vector<const GrowthRow*> shown = ShownRows(rows, top, &left);
  for (const GrowthRow* row : shown) {
    const std::string mark = MarkOf(growth, *row);
    const std::string stack = absl::StrCat(mark.empty() ? "" : absl::StrCat("[", mark, "] "), row->stack.Text());
    table.AddRow({by == GrowthBy::kSite ? row->module : GrowthRowName(*row),
                  by == GrowthBy::kTeam ? ""
                  : row->team.empty()   ? "-"
                                        : row->team,
                  FormatBytes(row->bytes.front(), row->errors.front()),
                  FormatBytes(row->bytes.back(), row->errors.back()), DeltaText(row->delta_bytes(), row->delta_error),
                  ShareOfGrowth(rows, *row),
                  row->cohort_bytes.has_value() ? FormatBytes(static_cast<double>(*row->cohort_bytes)) : "",
                  by == GrowthBy::kSite ? "" : VerdictText(row->verdict), by == GrowthBy::kSite ? stack : ""});
  }
  out += table.Print(kTextWidth, style);
  if (left > 0) absl::StrAppend(&out, left, " more\n");
  size_t reasons = 0;
  for (const GrowthRow* row : shown) {
    if (row->verdict.kind == GrowthKind::kNone || reasons++ >= kShownReasons) continue;
    absl::StrAppend(&out,
                    CutEnd(SafeText(absl::StrCat("  ", by == GrowthBy::kSite ? row->module : GrowthRowName(*row), ": ",
                                                 ReasonOf(*row))),
                           kTextWidth),
                    "\n");
  }
  if (by != GrowthBy::kSite) {
    size_t sites_left = 0;
    for (const GrowthRow* row : ShownRows(growth.sites, kShownSites, &sites_left, Which::kChanged)) {
      const std::string mark = MarkOf(growth, *row);
      const std::string head = absl::StrCat(DeltaText(row->delta_bytes(), row->delta_error), " ", row->module,
                                            mark.empty() ? "" : absl::StrCat(" [", mark, "]"), ": ");
      absl::StrAppend(
          &out, SafeText(head),
          CutMiddle(SafeText(row->stack.Text()), kTextWidth - std::min(kTextWidth - 20, DisplayWidth(head))), "\n");
    }
  }
  absl::StrAppend(&out, MethodText(growth), "\n");
  for (const std::string& warning : growth.warnings)
    absl::StrAppend(&out, style.Warning(absl::StrCat("warning: ", SafeText(warning))), "\n");
  absl::StrAppend(&out, "± is one standard error of the difference; samples alive in both cancel\n");
  return out;
}

void WriteGrowthJson(const Growth& growth, std::optional<size_t> top, TextSink sink) {
  JsonObject total;
  AppendNumbers(growth.total.bytes, &total.Value("bytes"));
  AppendNumbers(growth.total.errors, &total.Value("stderr"));
  total.Raw("delta_bytes", SignedNumber(growth.total.delta_bytes()));
  total.Raw("delta_stderr", SignedNumber(growth.total.delta_error));
  auto rows_by = [&](GrowthBy by) {
    return [&growth, by](const GrowthRow& row, std::string* out) { AppendRowJson(growth, row, by, out); };
  };
  size_t left = 0;
  const std::vector<const GrowthRow*> sites = ShownRows(growth.sites, top.value_or(SIZE_MAX), &left);

  JsonStream out(sink);
  out.Member("schema", "\"cadastre.diff/1\"");
  out.Array("snapshots", growth.moments, MomentJson);
  out.Member("one_process", growth.one_process ? "true" : "false");
  out.Member("total", total.Done());
  out.ArrayOf("modules", growth.modules, rows_by(GrowthBy::kModule));
  out.ArrayOf("teams", growth.teams, rows_by(GrowthBy::kTeam));
  out.ArrayOf("sites", sites, [&](const GrowthRow* row, std::string* to) { rows_by(GrowthBy::kSite)(*row, to); });
  out.Array("warnings", growth.warnings, JsonString);
}

void WriteGrowthCsv(const Growth& growth, GrowthBy by, std::optional<size_t> top, TextSink sink) {
  std::string out = by == GrowthBy::kTeam ? "team" : "module,team";
  absl::StrAppend(&out,
                  ",before_bytes,before_stderr,now_bytes,now_stderr,delta_bytes,delta_stderr,cohort_bytes,verdict,"
                  "rate_bytes_per_hour,reason",
                  by == GrowthBy::kSite ? ",change,identity,stack" : "", "\n");
  size_t left = 0;
  for (const GrowthRow* row : ShownRows(RowsOf(growth, by), top.value_or(SIZE_MAX), &left)) {
    const Verdict& verdict = row->verdict;
    absl::StrAppend(&out,
                    by == GrowthBy::kTeam ? CsvCell(row->name)
                                          : absl::StrCat(CsvCell(by == GrowthBy::kSite ? row->module : row->name), ",",
                                                         CsvCell(row->team)),
                    ",", SignedNumber(row->bytes.front()), ",", SignedNumber(row->errors.front()), ",",
                    SignedNumber(row->bytes.back()), ",", SignedNumber(row->errors.back()), ",");
    absl::StrAppend(&out, SignedNumber(row->delta_bytes()), ",", SignedNumber(row->delta_error), ",",
                    row->cohort_bytes.has_value() ? absl::StrCat(*row->cohort_bytes) : "", ",",
                    GrowthKindName(verdict.kind), ",",
                    verdict.rate_bytes_per_hour.has_value() ? SignedNumber(*verdict.rate_bytes_per_hour) : "", ",",
                    CsvCell(verdict.reason));
    if (by == GrowthBy::kSite) {
      absl::StrAppend(&out, ",", MarkOf(growth, *row), ",", row->identity, ",", CsvCell(row->stack.Text()));
    }
    out += "\n";
    if (out.size() < kTextPieceBytes) continue;
    sink(out);
    out.clear();
  }
  sink(out);
}

std::string FormatGrowthMarkdown(const Growth& growth, GrowthBy by, size_t top) {
  const bool verdicts = growth.moments.size() > 2;
  std::string out = absl::StrCat("**", MarkdownCell(Headline(growth)),
                                 "**: ", DeltaText(growth.total.delta_bytes(), growth.total.delta_error), "\n\n");
  absl::StrAppend(&out, by == GrowthBy::kTeam ? "| team |" : "| module | team |", " before | now | growth |",
                  verdicts ? " verdict |" : "", by == GrowthBy::kSite ? " stack |" : "", "\n",
                  by == GrowthBy::kTeam ? "|---|" : "|---|---|", "--:|--:|--:|", verdicts ? "---|" : "",
                  by == GrowthBy::kSite ? "---|" : "", "\n");
  size_t left = 0;
  for (const GrowthRow* row : ShownRows(RowsOf(growth, by), top, &left)) {
    absl::StrAppend(&out, "| ", MarkdownCell(by == GrowthBy::kSite ? row->module : GrowthRowName(*row)), " |",
                    by == GrowthBy::kTeam ? "" : absl::StrCat(" ", MarkdownCell(row->team), " |"), " ",
                    FormatBytes(row->bytes.front(), row->errors.front()), " | ",
                    FormatBytes(row->bytes.back(), row->errors.back()), " | ",
                    DeltaText(row->delta_bytes(), row->delta_error), " |");
    if (verdicts) absl::StrAppend(&out, " ", MarkdownCell(ReasonOf(*row)), " |");
    if (by == GrowthBy::kSite) absl::StrAppend(&out, " ", MarkdownCell(row->stack.Text()), " |");
    out += "\n";
  }
  if (left > 0) absl::StrAppend(&out, "\n", left, " more\n");
  absl::StrAppend(&out, "\n", MethodText(growth), "; ± is one standard error of the difference\n");
  for (const std::string& warning : growth.warnings) absl::StrAppend(&out, "\n> ", MarkdownCell(warning), "\n");
  return out;
}

}  // namespace cadastre
