#include "report/ledger_sums.h"

#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace cadastre {

const RunSum* LedgerSums::FindRow(const std::string& name) const {
  for (const RunSum& row : rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

LedgerSums LedgerSumsOf(const std::vector<Ledger>& runs) {
  std::map<std::string, std::vector<Estimate>> rows;
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<Estimate>> owners;
  for (size_t i = 0; i < runs.size(); i++) {
    auto add = [&](auto* sums, const auto& key, double bytes, double variance) {
      std::vector<Estimate>& estimates = (*sums)[key];
      estimates.resize(runs.size());
      estimates[i].value += bytes;
      estimates[i].variance += variance;
    };
    add(&rows, std::string(kRssRow), static_cast<double>(runs[i].rss_bytes), 0);
    for (const LedgerRow& row : runs[i].rows) {
      const std::string name = LedgerName(row.kind);
      const double bytes = static_cast<double>(row.resident_bytes);
      add(&rows, name, bytes, row.variance);
      if (!row.owner.empty()) add(&owners, std::make_tuple(name, row.owner, row.team), bytes, row.variance);
    }
  }
  LedgerSums sums;
  for (const auto& [name, estimates] : rows) {
    sums.rows.push_back(MeanOfRuns(estimates));
    sums.rows.back().name = name;
  }
  for (const auto& [key, estimates] : owners) {
    sums.owners.push_back(MeanOfRuns(estimates));
    std::tie(sums.owners.back().module, sums.owners.back().name, sums.owners.back().team) = key;
  }
  return sums;
}

std::string LedgerRowNamed(const std::string& text) {
  if (absl::EqualsIgnoreCase(text, kRssRow)) return kRssRow;
  for (size_t kind = 0; kind < kLedgerKinds; kind++) {
    const std::string name = LedgerName(static_cast<LedgerKind>(kind));
    if (absl::EqualsIgnoreCase(text, name)) return name;
  }
  return "";
}

std::string LedgerRowNames() {
  std::string names = kRssRow;
  for (size_t kind = 0; kind < kLedgerKinds; kind++)
    absl::StrAppend(&names, ", ", LedgerName(static_cast<LedgerKind>(kind)));
  return names;
}

}  // namespace cadastre
