#include "report/baseline.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "report/csv_cell.h"
#include "report/format.h"
#include "report/text_file.h"
#include "symbolizer/csv_reader.h"

namespace cadastre {
namespace {

constexpr char kFirstWords[] = "# cadastre baseline ";
constexpr char kFirstLine[] =
    "# cadastre baseline 1: made by `cadastre check --save`, compared with by `cadastre check --baseline`\n";
constexpr const char* kColumns[] = {"row", "name", "team", "bytes", "stderr", "spread", "site"};
constexpr size_t kColumnCount = 7;
constexpr char kEndRow[] = "end,,,,,,\n";
constexpr uint64_t kMaxBaselineLineBytes = 1 << 20;

// The place that the error leaves meaningful: 263,412,345 ±9,812,345 is 263,000,000 ±10,000,000.
double PlaceOf(double error) { return error >= 1 ? std::pow(10.0, std::floor(std::log10(error))) : 1; }
std::string Rounded(double value, double place) {
  return absl::StrCat(static_cast<uint64_t>(std::llround(std::max(0.0, std::round(value / place) * place))));
}

std::string SumRow(const char* row, const RunSum& sum, const std::string& name, const std::string& site) {
  const double place = PlaceOf(sum.error);
  return absl::StrCat(row, ",", CsvCell(name), ",", CsvCell(sum.team), ",", Rounded(sum.mean, place), ",",
                      Rounded(sum.error, place), ",", Rounded(sum.spread, place), ",", site, "\n");
}

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  absl::Status Take(const CsvRecord& record) {
    if (!has_header_) {
      for (size_t i = 0; i < kColumnCount; i++) {
        if (record.fields.size() != kColumnCount || record.fields[i].text != kColumns[i])
          return CsvError(path_, record.line, 1, "the header must be row,name,team,bytes,stderr,spread,site");
      }
      has_header_ = true;
      return absl::OkStatus();
    }
    if (record.fields.size() != kColumnCount) {
      return CsvError(path_, record.end_line, record.end_column,
                      absl::StrCat(record.fields.size(), " columns; a baseline has ", kColumnCount));
    }
    const std::string& row = record.fields[0].text;
    if (ended_) return CsvError(path_, record.line, 1, "a row behind the end row");
    ended_ = row == "end";
    if (row == "binary") sums_.builds[record.fields[1].text].insert(record.fields[6].text);
    if (ended_ || row == "binary") return absl::OkStatus();
    if (row == "program") sums_.program = record.fields[1].text;
    if (row == "method") sums_.method = record.fields[1].text;
    if (row == "rules") sums_.rules_hash = record.fields[6].text;
    if (row == "time") return TakeTime(record.fields[1]);
    if (row == "program" || row == "method" || row == "rules") return absl::OkStatus();
    double bytes = 0;
    if (absl::Status status = Number(record.fields[3], &bytes); !status.ok()) return status;
    if (row == "runs") sums_.runs = static_cast<uint64_t>(bytes);
    if (row == "interval") sums_.interval_bytes = static_cast<uint64_t>(bytes);
    if (row == "uptime") sums_.uptime_s = bytes;
    if (row == "runs" || row == "interval" || row == "uptime") return absl::OkStatus();
    return TakeSum(record, bytes);
  }

  absl::StatusOr<RunSums> Finish() {
    if (!has_header_) return CsvError(path_, 1, 1, "the header is missing: the file is cut, or no baseline");
    if (sums_.method.empty() || sums_.runs == 0 || !has_total_)
      return absl::InvalidArgumentError(absl::StrCat(path_, ": no method, runs or total: the file is cut"));
    if (!ended_)
      return absl::InvalidArgumentError(absl::StrCat(path_,
                                                     ": no end row: the file is cut, or was saved by an older "
                                                     "Cadastre: save it again"));
    return std::move(sums_);
  }

 private:
  absl::Status Number(const CsvField& field, double* value) const {
    if (absl::SimpleAtod(field.text, value) && *value >= 0 && *value < 1e18) return absl::OkStatus();
    return CsvError(path_, field.line, field.column, absl::StrCat("'", field.text, "' is not a number of bytes"));
  }

  absl::Status TakeTime(const CsvField& field) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, field.text, &time, &error))
      return CsvError(path_, field.line, field.column, absl::StrCat("'", field.text, "' is not a time"));
    sums_.time_ns = static_cast<uint64_t>(absl::ToUnixNanos(time));
    return absl::OkStatus();
  }

  absl::Status TakeSum(const CsvRecord& record, double bytes) {
    RunSum sum;
    sum.name = record.fields[1].text;
    sum.team = record.fields[2].text;
    sum.mean = bytes;
    for (auto [field, value] : {std::pair(4, &sum.error), std::pair(5, &sum.spread)}) {
      if (absl::Status status = Number(record.fields[static_cast<size_t>(field)], value); !status.ok()) return status;
    }
    const std::string& row = record.fields[0].text;
    // What a merge leaves behind: which of the two counts is not for us to choose.
    const bool named = row == "total" || row == "module" || row == "team";
    if (named && !seen_.insert({row, sum.name}).second)
      return CsvError(path_, record.fields[1].line, record.fields[1].column,
                      absl::StrCat(row, " '", sum.name, "' stands there twice"));
    if (row == "total") {
      sums_.total = sum;
      has_total_ = true;
    } else if (row == "module") {
      sums_.modules.push_back(sum);
    } else if (row == "team") {
      sums_.teams.push_back(sum);
    } else if (row == "site") {
      if (sums_.modules.empty()) return CsvError(path_, record.line, 1, "a site stands before its module");
      sum.identity = record.fields[6].text;
      sum.module = sums_.modules.back().name;
      sums_.sites.push_back(sum);
    } else {
      return CsvError(path_, record.fields[0].line, record.fields[0].column, absl::StrCat("unknown row '", row, "'"));
    }
    return absl::OkStatus();
  }

  std::string path_;
  bool has_header_ = false, has_total_ = false, ended_ = false;
  std::set<std::pair<std::string, std::string>> seen_;  // rows and their names
  RunSums sums_;
};

}  // namespace

std::string FormatBaseline(const RunSums& sums) {
  std::string out = kFirstLine;
  absl::StrAppend(&out, "row,name,team,bytes,stderr,spread,site\n", "program,", CsvCell(sums.program), ",,,,,\n",
                  "method,", CsvCell(sums.method), ",,,,,\n", "runs,,,", sums.runs, ",,,\n", "interval,,,",
                  sums.interval_bytes, ",,,\n", "uptime,,,", static_cast<uint64_t>(std::llround(sums.uptime_s)),
                  ",,,\n", "rules,,,,,,", sums.rules_hash, "\n", "time,", TimeText(sums.time_ns), ",,,,,\n");
  for (const auto& [name, builds] : sums.builds) {
    for (const std::string& build : builds) absl::StrAppend(&out, "binary,", CsvCell(name), ",,,,,", build, "\n");
  }
  out += SumRow("total", sums.total, "", "");
  // The heaviest sites that are surely there.
  std::vector<const RunSum*> sites;
  for (const RunSum& site : sums.sites) {
    if (site.mean > 3 * site.error) sites.push_back(&site);
  }
  std::stable_sort(sites.begin(), sites.end(), [](const RunSum* a, const RunSum* b) { return a->mean > b->mean; });
  if (sites.size() > kMaxBaselineSites) sites.resize(kMaxBaselineSites);
  std::stable_sort(sites.begin(), sites.end(),
                   [](const RunSum* a, const RunSum* b) { return a->identity < b->identity; });
  for (const RunSum& module : sums.modules) {
    out += SumRow("module", module, module.name, "");
    for (const RunSum* site : sites) {
      if (site->module == module.name) out += SumRow("site", *site, site->name, site->identity);
    }
  }
  for (const RunSum& team : sums.teams) out += SumRow("team", team, team.name, "");
  return out + kEndRow;
}

absl::StatusOr<RunSums> ReadBaseline(const std::string& path) {
  absl::StatusOr<TextFile> file = TextFile::Open(path);
  if (!file.ok()) return file.status();
  Parser parser(path);
  CsvReader reader(path, kMaxBaselineLineBytes, [&](const CsvRecord& record) { return parser.Take(record); });
  bool first = true;
  while (file->Next()) {
    const std::string line(file->line());
    if (first && !absl::StartsWith(line, absl::StrCat(kFirstWords, "1:"))) {
      return file->Error(absl::StartsWith(line, kFirstWords)
                             ? "a baseline of another version of Cadastre: save it again"
                             : "no baseline: cadastre check --save FILE writes one");
    }
    first = false;
    absl::Status status = reader.Feed(line + "\n");
    if (!status.ok()) return status;
  }
  if (!file->status().ok()) return file->status();
  if (first) return absl::InvalidArgumentError(absl::StrCat(path, ": empty"));
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return parser.Finish();
}

bool IsBaseline(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;  // a pipe would be waited for
  absl::StatusOr<TextFile> file = TextFile::Open(path);
  if (!file.ok()) return false;
  absl::StatusOr<std::string_view> head = file->Peek(sizeof(kFirstWords) - 1);
  return head.ok() && *head == kFirstWords;
}

}  // namespace cadastre
