#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "report/csv_cell.h"
#include "report/estimate.h"
#include "report/json_writer.h"
#include "report/rollup.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

std::string BytesText(uint64_t bytes) { return FormatBytes(static_cast<double>(bytes)); }
std::string Count(uint64_t count) { return FormatCount(static_cast<double>(count)); }
std::string Share(double percent) { return absl::StrFormat("%.1f %%", percent); }

const char* MeasureName(const Rollup& rollup) {
  return rollup.measure == HeapMeasure::kRetained ? "retained" : "shallow";
}

std::string RollupMethod(const Rollup& rollup) {
  return absl::StrCat("heap: ", MeasureName(rollup), " bytes by class, ", Count(rollup.classes), " classes",
                      rollup.containers.empty() ? "" : "; what lies in containers by who created it",
                      " · stacks: samples by first owned frame, ", Count(rollup.stacks), " stacks");
}

std::string VerdictText(const Rollup& rollup, double limit_percent) {
  double percent = rollup.UnattributedPercent();
  return absl::StrCat("unattributed: ", rollup.HasBytes() ? Share(percent) + " of the bytes, " : "",
                      Share(rollup.SamplesSharePercent(rollup.Unattributed())),
                      " of the samples: ", percent > limit_percent ? "FAILED, more than " : "passed, at most ",
                      JsonNumber(limit_percent), " %", rollup.HasBytes() ? " of the bytes" : "");
}

std::string ContainerLine(const RollupContainer& container) {
  std::string creators;
  for (const RollupRow& row : container.creators) {
    absl::StrAppend(&creators, creators.empty() ? "" : ", ", row.name, " ", BytesText(row.bytes), " (",
                    Share(100.0 * static_cast<double>(row.samples) / static_cast<double>(container.samples)), ")");
  }
  std::string line =
      absl::StrCat(container.pool ? "pooled in " : "in ", container.holder, ": ", BytesText(container.held_bytes));
  if (container.samples == 0) return absl::StrCat(line, ", not divided: no stack goes through it");
  return absl::StrCat(line, container.pool ? ", charged to the first requester of each piece: " : ", created by ",
                      creators, ", as ", Count(container.samples), " samples are");
}

struct RowsTable {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

RowsTable ModuleTable(const Rollup& rollup) {
  const bool held = !rollup.containers.empty();
  RowsTable table{{{"MODULE", Align::kLeft, true},
                   {"TEAM", Align::kLeft, true},
                   {"BYTES", Align::kRight},
                   {"SHARE", Align::kRight},
                   {"HELD", Align::kRight},
                   {"SAMPLES", Align::kRight},
                   {"SHARE", Align::kRight}},
                  {}};
  for (const RollupRow& row : rollup.modules) {
    table.rows.push_back({SafeText(row.name),
                          row.team.empty() || &row == &rollup.Unattributed() ? "-" : SafeText(row.team),
                          BytesText(row.bytes), Share(rollup.SharePercent(row)), held ? BytesText(row.held_bytes) : "",
                          Count(row.samples), Share(rollup.SamplesSharePercent(row))});
  }
  return table;
}

RowsTable TeamTable(const Rollup& rollup) {
  RowsTable table{
      {{"TEAM", Align::kLeft, true}, {"BYTES", Align::kRight}, {"SHARE", Align::kRight}, {"SAMPLES", Align::kRight}},
      {}};
  for (const RollupRow& row : rollup.teams) {
    table.rows.push_back({row.name.empty() ? "(no team)" : SafeText(row.name), BytesText(row.bytes),
                          Share(rollup.SharePercent(row)), Count(row.samples)});
  }
  return table;
}

std::string PrintText(const RowsTable& rows) {
  TextTable table(rows.columns);
  for (const std::vector<std::string>& cells : rows.rows) table.AddRow(cells);
  return table.Print(kTextWidth, {});
}

std::string PrintMarkdown(const RowsTable& rows) {
  std::string out, heading = "|", ruler = "|";
  auto empty = [&](size_t column) {
    for (const auto& cells : rows.rows) {
      if (!cells[column].empty()) return false;
    }
    return true;
  };
  for (size_t i = 0; i < rows.columns.size(); i++) {
    if (empty(i)) continue;
    absl::StrAppend(&heading, " ", rows.columns[i].heading, " |");
    ruler += rows.columns[i].align == Align::kRight ? "--:|" : "---|";
  }
  absl::StrAppend(&out, heading, "\n", ruler, "\n");
  for (const auto& cells : rows.rows) {
    out += "|";
    for (size_t i = 0; i < cells.size(); i++) {
      if (!empty(i)) absl::StrAppend(&out, " ", absl::StrReplaceAll(cells[i], {{"|", "\\|"}, {"<", "&lt;"}}), " |");
    }
    out += "\n";
  }
  return out;
}

}  // namespace

std::string FormatRollupText(const Rollup& rollup, double limit_percent) {
  std::string out = absl::StrCat(PrintText(ModuleTable(rollup)), "\n", PrintText(TeamTable(rollup)), "\n");
  for (const RollupContainer& container : rollup.containers)
    absl::StrAppend(&out, SafeText(ContainerLine(container)), "\n");
  absl::StrAppend(&out, RollupMethod(rollup), "\n", VerdictText(rollup, limit_percent), "\n");
  for (const std::string& warning : rollup.warnings) absl::StrAppend(&out, "warning: ", SafeText(warning), "\n");
  if (!rollup.suggestions.empty())
    out += "rules that would give the unattributed part an owner (fill in module and team):\n";
  for (const RollupSuggestion& suggestion : rollup.suggestions) {
    absl::StrAppend(&out, "  ", SafeText(CsvCell(suggestion.prefix)), ",MODULE,TEAM  # ", BytesText(suggestion.bytes),
                    ", ", Count(suggestion.samples), " samples\n");
  }
  return absl::StrCat(out, "a triage aid, not an invoice\n");
}

std::string FormatRollupMarkdown(const Rollup& rollup, double limit_percent) {
  std::string out = absl::StrCat(PrintMarkdown(ModuleTable(rollup)), "\n", PrintMarkdown(TeamTable(rollup)), "\n");
  for (const RollupContainer& container : rollup.containers)
    absl::StrAppend(&out, SafeText(ContainerLine(container)), "\n\n");
  absl::StrAppend(&out, RollupMethod(rollup), "; ", VerdictText(rollup, limit_percent),
                  "; a triage aid, not an invoice\n");
  for (const std::string& warning : rollup.warnings) absl::StrAppend(&out, "\n> ", SafeText(warning), "\n");
  return out;
}

std::string FormatRollupCsv(const Rollup& rollup) {
  std::string out = "module,team,bytes,share_pct,held_bytes,samples,samples_share_pct\n";
  for (const RollupRow& row : rollup.modules) {
    absl::StrAppend(&out, CsvCell(row.name), ",", CsvCell(&row == &rollup.Unattributed() ? "" : row.team), ",",
                    row.bytes, ",", JsonNumber(rollup.SharePercent(row)), ",");
    absl::StrAppend(&out, row.held_bytes, ",", row.samples, ",", JsonNumber(rollup.SamplesSharePercent(row)), "\n");
  }
  return out;
}

std::string FormatRollupJson(const Rollup& rollup, double limit_percent) {
  std::vector<std::string> modules, teams, containers, suggestions, warnings;
  for (const RollupRow& row : rollup.modules) {
    JsonObject object;
    object.Text("module", row.name).Integer("bytes", row.bytes).Number("share_pct", rollup.SharePercent(row));
    object.Integer("samples", row.samples).Number("samples_share_pct", rollup.SamplesSharePercent(row));
    object.Integer("held_bytes", row.held_bytes);
    modules.push_back(object.TextOrNull("team", &row == &rollup.Unattributed() ? "" : row.team).Done());
  }
  for (const RollupRow& row : rollup.teams) {
    JsonObject object;
    object.TextOrNull("team", row.name).Integer("bytes", row.bytes).Number("share_pct", rollup.SharePercent(row));
    teams.push_back(object.Integer("samples", row.samples).Done());
  }
  for (const RollupContainer& container : rollup.containers) {
    std::vector<std::string> creators;
    for (const RollupRow& row : container.creators) {
      JsonObject creator;
      creators.push_back(
          creator.Text("module", row.name).Integer("bytes", row.bytes).Integer("samples", row.samples).Done());
    }
    JsonObject object;
    object.Text("holder", container.holder).Bool("pool", container.pool).Integer("held_bytes", container.held_bytes);
    object.Integer("samples", container.samples).Raw("created_by", JsonArray(creators, "    "));
    containers.push_back(object.Done());
  }
  for (const RollupSuggestion& suggestion : rollup.suggestions) {
    JsonObject object;
    object.Text("prefix", suggestion.prefix).Integer("bytes", suggestion.bytes);
    suggestions.push_back(object.Integer("samples", suggestion.samples).Done());
  }
  for (const std::string& warning : rollup.warnings) warnings.push_back(JsonString(warning));
  std::string out = "{\n";
  auto member = [&out](const char* key, const std::string& json, bool last = false) {
    absl::StrAppend(&out, "  \"", key, "\": ", json, last ? "\n" : ",\n");
  };
  member("schema", "\"cadastre.rollup/1\"");
  member("method", JsonString(RollupMethod(rollup)));
  member("heap_measure", JsonString(MeasureName(rollup)));
  member("bytes", absl::StrCat(rollup.bytes));
  member("samples", absl::StrCat(rollup.samples));
  member("modules", JsonArray(modules, "  "));
  member("teams", JsonArray(teams, "  "));
  member("unattributed_share_pct", JsonNumber(rollup.UnattributedPercent()));
  member("unattributed_samples_share_pct", JsonNumber(rollup.SamplesSharePercent(rollup.Unattributed())));
  member("max_unattributed_pct", JsonNumber(limit_percent));
  member("containers", JsonArray(containers, "  "));
  member("suggested_rules", JsonArray(suggestions, "  "));
  member("warnings", JsonArray(warnings, "  "), true);
  return out + "}\n";
}

}  // namespace cadastre
