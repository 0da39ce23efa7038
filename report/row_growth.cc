#include "report/row_growth.h"

#include <map>
#include <utility>

namespace cadastre {
namespace {

using Owner = std::pair<std::string, std::string>;

std::map<Owner, RowGrowth> ByOwner(const std::vector<GrowthRow>& rows) {
  std::map<Owner, RowGrowth> growth;
  for (const GrowthRow& row : rows)
    growth.try_emplace({row.name, row.team}, RowGrowth{row.delta_bytes(), row.delta_error, row.verdict});
  return growth;
}

void Give(const std::map<Owner, RowGrowth>& growth, const Owner& owner, Row* row) {
  auto found = growth.find(owner);
  if (found != growth.end()) row->growth = found->second;
}

}  // namespace

void AddGrowth(const Growth& growth, Report* report) {
  const Growth::Moment& first = growth.moments.front();
  report->since = ReportSince{first.label, first.path, first.time_ns, growth.moments.size()};
  const std::map<Owner, RowGrowth> modules = ByOwner(growth.modules), teams = ByOwner(growth.teams);
  for (Row& row : report->modules) Give(modules, {row.name, row.team}, &row);
  for (Row& row : report->teams) Give(teams, {row.name, ""}, &row);
  Give(modules, {report->unattributed.name, ""}, &report->unattributed);
}

}  // namespace cadastre
