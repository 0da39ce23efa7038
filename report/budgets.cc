#include "report/budgets.h"

#include <functional>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "interposer/options.h"
#include "report/ledger_sums.h"
#include "report/rows.h"
#include "report/text_file.h"
#include "symbolizer/csv_reader.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxTableLineBytes = 1 << 20;
constexpr const char* kScopes[] = {"module", "team", "total", "row"};
constexpr char kResident[] = "resident";
constexpr Metric kBudgetMetrics[] = {Metric::kLive, Metric::kPeak, Metric::kAllocated, Metric::kCount, Metric::kMapped};

// A small table: columns by name in any order, `needed` of them required.
class Table {
 public:
  Table(std::string path, std::vector<std::string> columns, size_t needed)
      : path_(std::move(path)), columns_(std::move(columns)), needed_(needed) {}

  // `take` gets a field for each column; those that are not there are empty, at the end of the record.
  absl::Status Read(const std::function<absl::Status(const std::vector<CsvField>&, int line)>& take) {
    absl::StatusOr<TextFile> file = TextFile::Open(path_);
    if (!file.ok()) return file.status();
    CsvReader reader(path_, kMaxTableLineBytes, [&](const CsvRecord& record) { return Take(record, take); });
    while (file->Next()) {
      if (absl::Status status = reader.Feed(std::string(file->line()) + "\n"); !status.ok()) return status;
    }
    if (!file->status().ok()) return file->status();
    if (absl::Status status = reader.Finish(); !status.ok()) return status;
    return places_.empty() ? CsvError(path_, 1, 1, absl::StrCat("missing header line: ", absl::StrJoin(columns_, ",")))
                           : absl::OkStatus();
  }

 private:
  absl::Status Take(const CsvRecord& record,
                    const std::function<absl::Status(const std::vector<CsvField>&, int line)>& take) {
    if (places_.empty()) return TakeHeader(record);
    if (record.fields.size() > width_) {
      return CsvError(path_, record.fields[width_].line, record.fields[width_].column,
                      absl::StrCat(record.fields.size(), " columns; the header names ", width_));
    }
    std::vector<CsvField> fields;
    for (size_t i = 0; i < columns_.size(); i++) {
      const bool there = places_[i] >= 0 && static_cast<size_t>(places_[i]) < record.fields.size();
      if (!there && i < needed_)
        return CsvError(path_, record.end_line, record.end_column, absl::StrCat("missing column '", columns_[i], "'"));
      fields.push_back(there ? record.fields[static_cast<size_t>(places_[i])]
                             : CsvField{"", record.end_line, record.end_column});
    }
    return take(fields, record.line);
  }

  absl::Status TakeHeader(const CsvRecord& record) {
    places_.assign(columns_.size(), -1);
    width_ = record.fields.size();
    for (size_t i = 0; i < width_; i++) {
      const CsvField& field = record.fields[i];
      size_t column = 0;
      while (column < columns_.size() && columns_[column] != field.text) column++;
      if (column == columns_.size()) {
        return CsvError(
            path_, field.line, field.column,
            absl::StrCat("unknown column '", field.text, "'; the header is ", absl::StrJoin(columns_, ",")));
      }
      if (places_[column] >= 0)
        return CsvError(path_, field.line, field.column, absl::StrCat("column '", field.text, "' appears twice"));
      places_[column] = static_cast<int>(i);
    }
    for (size_t i = 0; i < needed_; i++) {
      if (places_[i] < 0)
        return CsvError(path_, record.line, 1, absl::StrCat("missing column '", columns_[i], "' in the header"));
    }
    return absl::OkStatus();
  }

  std::string path_;
  std::vector<std::string> columns_;
  size_t needed_, width_ = 0;
  std::vector<int> places_;
};

absl::Status TakeLimit(const std::string& path, const CsvField& field, Budget* budget) {
  auto error = [&](const char* what) {
    return CsvError(path, field.line, field.column, absl::StrCat("'", field.text, "' is not ", what));
  };
  if (budget->is_share) {
    absl::string_view text = absl::StripTrailingAsciiWhitespace(absl::StripSuffix(field.text, "%"));
    if (absl::SimpleAtod(text, &budget->limit) && budget->limit >= 0 && budget->limit <= 100) return absl::OkStatus();
    return error("a percentage from 0 to 100");
  }
  uint64_t value = 0;
  if (budget->metric == Metric::kCount) {
    if (!absl::SimpleAtoi(field.text, &value)) return error("a whole number of blocks");
  } else if (!ParseSize(field.text.data(), field.text.size(), &value)) {
    return error("a size: write 512k, 64m or 1g");
  }
  budget->limit = static_cast<double>(value);
  return absl::OkStatus();
}

absl::Status TakeBudget(const std::string& path, const std::vector<CsvField>& fields, int line, Budget* budget) {
  const CsvField &scope = fields[0], &name = fields[1], &metric = fields[2], &until = fields[4];
  budget->file = path;
  budget->line = line;
  size_t kind = 0;
  while (kind < std::size(kScopes) && scope.text != kScopes[kind]) kind++;
  if (kind == std::size(kScopes)) {
    return CsvError(path, scope.line, scope.column,
                    absl::StrCat("unknown scope '", scope.text, "'; known are ", absl::StrJoin(kScopes, ", ")));
  }
  budget->scope = static_cast<BudgetScope>(kind);
  budget->name = name.text;
  if (name.text.empty() != (budget->scope == BudgetScope::kTotal)) {
    return CsvError(path, name.line, name.column,
                    name.text.empty() ? "empty name" : "the scope total has no name: leave it empty");
  }
  if (budget->scope == BudgetScope::kRow) {
    budget->name = LedgerRowNamed(name.text);
    if (budget->name.empty()) {
      return CsvError(path, name.line, name.column,
                      absl::StrCat("the ledger has no row '", name.text, "'; it has ", LedgerRowNames()));
    }
    if (metric.text != kResident)
      return CsvError(path, metric.line, metric.column, "the metric of a row of the ledger is resident");
  }
  bool known = budget->scope == BudgetScope::kRow;
  for (Metric candidate : kBudgetMetrics) {
    if (metric.text != MetricName(candidate)) continue;
    budget->metric = candidate;
    known = true;
  }
  budget->is_share = metric.text == "share";
  if (!known && !budget->is_share) {
    return CsvError(
        path, metric.line, metric.column,
        absl::StrCat("unknown metric '", metric.text, "'; known are live, peak, allocated, count, mapped and share"));
  }
  if (absl::Status status = TakeLimit(path, fields[3], budget); !status.ok()) return status;
  absl::CivilDay day;
  if (!until.text.empty() && (until.text.size() != 10 || !absl::ParseCivilTime(until.text, &day))) {
    return CsvError(path, until.line, until.column, absl::StrCat("'", until.text, "' is not a day: write 2026-09-30"));
  }
  budget->until = until.text;
  budget->reason = fields[5].text;
  return absl::OkStatus();
}

using What = std::tuple<BudgetScope, std::string, Metric, bool>;
What WhatOf(const Budget& budget) { return {budget.scope, budget.name, budget.metric, budget.is_share}; }

}  // namespace

const char* BudgetScopeName(BudgetScope scope) { return kScopes[static_cast<int>(scope)]; }

std::string BudgetMetricName(const Budget& budget) {
  return budget.scope == BudgetScope::kRow ? kResident : budget.is_share ? "share" : MetricName(budget.metric);
}

absl::StatusOr<std::vector<Budget>> ReadBudgets(const std::string& path) {
  std::vector<Budget> budgets;
  std::map<std::pair<What, bool>, int> lines;
  Table table(path, {"scope", "name", "metric", "limit", "until", "reason"}, 4);
  absl::Status status = table.Read([&](const std::vector<CsvField>& fields, int line) {
    Budget budget;
    if (absl::Status taken = TakeBudget(path, fields, line, &budget); !taken.ok()) return taken;
    auto [place, inserted] = lines.try_emplace({WhatOf(budget), budget.until.empty()}, line);
    if (!inserted)
      return CsvError(path, line, 1, absl::StrCat("the same budget stands at line ", place->second, " already"));
    budgets.push_back(std::move(budget));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  if (budgets.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": no budget in it"));
  return budgets;
}

std::vector<Budget> BudgetsOn(const std::string& today, const std::vector<Budget>& budgets,
                              std::vector<Budget>* expired) {
  std::map<What, const Budget*> chosen;
  for (const Budget& budget : budgets) {
    const bool over = !budget.until.empty() && budget.until < today;  // ISO days sort as text
    const Budget*& now = chosen[WhatOf(budget)];
    if (over) continue;
    if (now == nullptr || now->until.empty()) now = &budget;
  }
  std::vector<Budget> valid;
  for (const Budget& budget : budgets) {
    const Budget* now = chosen[WhatOf(budget)];
    if (now == &budget) valid.push_back(budget);
    if (now == nullptr) expired->push_back(budget);
  }
  return valid;
}

absl::StatusOr<TeamContacts> ReadTeams(const std::string& path) {
  TeamContacts contacts;
  Table table(path, {"team", "contact"}, 2);
  absl::Status status = table.Read([&](const std::vector<CsvField>& fields, int line) {
    if (fields[0].text.empty()) return CsvError(path, fields[0].line, fields[0].column, "empty team");
    if (!contacts.emplace(fields[0].text, fields[1].text).second)
      return CsvError(path, line, 1, absl::StrCat("team ", fields[0].text, " stands twice"));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return contacts;
}

}  // namespace cadastre
