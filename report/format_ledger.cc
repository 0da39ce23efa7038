// The RSS ledger as text, JSON, CSV and markdown: the same rows.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "report/csv_cell.h"
#include "report/estimate.h"
#include "report/format.h"
#include "report/json_writer.h"
#include "report/ledger.h"

namespace cadastre {
namespace {

std::string Signed(int64_t bytes, double error = 0) {
  return absl::StrCat(bytes < 0 ? "-" : "", FormatBytes(std::fabs(static_cast<double>(bytes)), error));
}

// Of an estimate what is below zero is nothing, within its error (BelowZeroLine says so).
std::string ShownBytes(const LedgerRow& row, int64_t bytes, double error = 0) {
  return Signed(row.estimate ? std::max<int64_t>(bytes, 0) : bytes, error);
}

std::string SignedJson(int64_t value) { return absl::StrCat(value); }

// Libraries are many and small: two of them and the rest say enough.
size_t ShownOf(LedgerKind kind, size_t top) {
  return kind == LedgerKind::kLibraryText || kind == LedgerKind::kLibraryData ? std::min<size_t>(top, 2) : top;
}

void AddToRest(const LedgerRow& row, LedgerRow* rest) {
  rest->virtual_bytes += row.virtual_bytes;
  rest->committed_bytes += row.committed_bytes;
  rest->resident_bytes += row.resident_bytes;
  rest->shared_bytes += row.shared_bytes;
  rest->variance += row.variance;
  rest->estimate |= row.estimate;
}

struct ShownRow {
  LedgerRow row;
  std::string owner;
};

// Rows with nothing resident and no estimate are only address space: left out of what people read, except the last.
std::vector<ShownRow> ShownRows(const Ledger& ledger, size_t top) {
  std::vector<ShownRow> shown;
  for (size_t kind = 0; kind < kLedgerKinds; kind++) {
    size_t count = 0, more = 0;
    LedgerRow rest;
    rest.kind = static_cast<LedgerKind>(kind);
    for (const LedgerRow& row : ledger.rows) {
      if (static_cast<size_t>(row.kind) != kind) continue;
      if (row.resident_bytes == 0 && row.virtual_bytes == 0 && row.kind != LedgerKind::kUnexplained) continue;
      if (count++ < ShownOf(row.kind, top)) {
        shown.push_back({row, row.owner.empty() ? "" : row.guessed ? row.owner + " ?" : row.owner});
      } else {
        more++;
        AddToRest(row, &rest);
      }
    }
    if (more > 0) shown.push_back({rest, absl::StrCat(more, " more")});
  }
  return shown;
}

std::string RowJson(const LedgerRow& row) {
  JsonObject object;
  object.Text("name", LedgerName(row.kind))
      .TextOrNull("owner", row.owner)
      .TextOrNull("team", row.team)
      .Raw("virtual_bytes", SignedJson(row.virtual_bytes))
      .Raw("committed_bytes", SignedJson(row.committed_bytes))
      .Raw("resident_bytes", SignedJson(row.resident_bytes))
      .Raw("shared_bytes", SignedJson(row.shared_bytes))
      .Bool("estimate", row.estimate)
      .Integer("resident_bytes_stderr", static_cast<uint64_t>(std::llround(row.StandardError())));
  return object.Done();
}

std::string AllocatorJson(const AllocatorState& state) {
  JsonObject object;
  object.Text("name", state.name)
      .Text("taken", TimeText(state.taken_realtime_ns))
      .Integer("arenas", state.arenas)
      .Integer("system_bytes", state.system_bytes)
      .Integer("free_bytes", state.free_bytes)
      .Integer("free_chunks", state.free_chunks)
      .Integer("top_bytes", state.top_bytes)
      .Bool("whole", state.whole);
  return object.Done();
}

// A line that may be longer than the screen is wide, broken between words.
void AppendWrapped(std::string text, std::string* out) {
  text = SafeText(text);
  while (DisplayWidth(text) > kTextWidth) {
    const size_t cut = text.rfind(' ', kTextWidth);
    if (cut == std::string::npos || cut < 4) break;
    absl::StrAppend(out, text.substr(0, cut), "\n");
    text = absl::StrCat("  ", text.substr(cut + 1));
  }
  absl::StrAppend(out, CutEnd(text, kTextWidth), "\n");
}

}  // namespace

std::string FormatLedgerText(const Ledger& ledger, const TextStyle& style, size_t top) {
  std::string out = style.Bold(SafeText(absl::StrCat("pid ", ledger.pid, " · ", ledger.program))) + "\n";
  AppendWrapped(ledger.summary, &out);
  TextTable table({{"ROW"},
                   {"OWNER", Align::kLeft, true},
                   {"VIRTUAL", Align::kRight},
                   {"COMMITTED", Align::kRight},
                   {"RESIDENT", Align::kRight},
                   {"SHARED", Align::kRight}});
  for (const ShownRow& shown : ShownRows(ledger, top)) {
    const LedgerRow& row = shown.row;
    table.AddRow({LedgerName(row.kind), SafeText(shown.owner), ShownBytes(row, row.virtual_bytes),
                  ShownBytes(row, row.committed_bytes), ShownBytes(row, row.resident_bytes, row.StandardError()),
                  row.shared_bytes == 0 ? "" : Signed(row.shared_bytes)});
  }
  table.AddRow({"sum", "", "", "", FormatBytes(static_cast<double>(ledger.rss_bytes)), ""});
  out += table.Print(kTextWidth, style);
  if (std::string line = BelowZeroLine(ledger); !line.empty()) AppendWrapped(absl::StrCat("note: ", line), &out);
  for (const LedgerCheck& check : ledger.checks) AppendWrapped(absl::StrCat("check: ", check.text), &out);
  if (std::string line = AllocatorLine(ledger.allocator); !line.empty())
    AppendWrapped(absl::StrCat("allocator: ", line), &out);
  for (const std::string& advice : ledger.advice) AppendWrapped(absl::StrCat("advice: ", advice), &out);
  for (const std::string& warning : ledger.warnings) AppendWrapped(absl::StrCat("warning: ", warning), &out);
  if (!ledger.recorded)
    AppendWrapped("not recorded: who owns malloc and mappings is not known; start it with `cadastre run`", &out);
  return out;
}

std::string FormatLedgerJson(const Ledger& ledger) {
  std::vector<std::string> rows, checks, advice, warnings;
  for (const LedgerRow& row : ledger.rows) rows.push_back(RowJson(row));
  for (const LedgerCheck& check : ledger.checks) {
    JsonObject object;
    object.Text("name", check.name)
        .Raw("ledger_bytes", SignedJson(check.ledger_bytes))
        .Raw("other_bytes", SignedJson(check.other_bytes))
        .Raw("explained_bytes", SignedJson(check.explained_bytes))
        .Text("text", check.text);
    checks.push_back(object.Done());
  }
  for (const std::string& line : ledger.advice) advice.push_back(JsonString(line));
  for (const std::string& line : ledger.warnings) warnings.push_back(JsonString(line));
  JsonObject document;
  document.Text("schema", "cadastre.rss/1")
      .Integer("pid", ledger.pid)
      .Integer("rss_bytes", ledger.rss_bytes)
      .Text("taken", TimeText(ledger.taken_realtime_ns))
      .Text("program", ledger.program)
      .Bool("recorded", ledger.recorded)
      .Text("summary", ledger.summary)
      .Raw("rows", JsonArray(rows, "  "))
      .Raw("threads", ThreadStacksJson(ledger, "  "))
      .Raw("checks", JsonArray(checks, "  "))
      .Raw("allocator", ledger.allocator.name.empty() ? "null" : AllocatorJson(ledger.allocator))
      .Raw("advice", JsonArray(advice, "  "))
      .Raw("warnings", JsonArray(warnings, "  "));
  return document.Done() + "\n";
}

std::string LedgerSummaryJson(const Ledger& ledger) {
  std::vector<std::string> rows;
  for (size_t kind = 0; kind < kLedgerKinds; kind++) {
    const bool there = std::any_of(ledger.rows.begin(), ledger.rows.end(),
                                   [&](const LedgerRow& row) { return static_cast<size_t>(row.kind) == kind; });
    if (there) rows.push_back(RowJson(ledger.Sum(static_cast<LedgerKind>(kind))));
  }
  JsonObject object;
  object.Integer("rss_bytes", ledger.rss_bytes)
      .Text("taken", TimeText(ledger.taken_realtime_ns))
      .Text("summary", ledger.summary)
      .Raw("rows", JsonArray(rows, "    "))
      .Raw("threads", ThreadStacksJson(ledger, "    "));
  return object.Done();
}

std::string FormatLedgerCsv(const Ledger& ledger) {
  std::string out =
      "name,owner,team,virtual_bytes,committed_bytes,resident_bytes,resident_bytes_stderr,shared_bytes,estimate\n";
  for (const LedgerRow& row : ledger.rows) {
    absl::StrAppend(&out, CsvCell(LedgerName(row.kind)), ",", CsvCell(row.owner), ",", CsvCell(row.team), ",",
                    row.virtual_bytes, ",", row.committed_bytes, ",", row.resident_bytes, ",",
                    std::llround(row.StandardError()), ",", row.shared_bytes, ",", row.estimate ? "true" : "false",
                    "\n");
  }
  return out;
}

std::string FormatLedgerMarkdown(const Ledger& ledger) {
  std::string out =
      absl::StrCat("**", MarkdownCell(ledger.program), "** pid ", ledger.pid, ": ", MarkdownCell(ledger.summary),
                   "\n\n| row | owner | virtual | committed | resident | shared |\n"
                   "|---|---|--:|--:|--:|--:|\n");
  for (const LedgerRow& row : ledger.rows) {
    absl::StrAppend(&out, "| ", LedgerName(row.kind), " | ", MarkdownCell(row.owner), " | ",
                    ShownBytes(row, row.virtual_bytes), " | ", ShownBytes(row, row.committed_bytes), " | ",
                    ShownBytes(row, row.resident_bytes, row.StandardError()), " | ", Signed(row.shared_bytes), " |\n");
  }
  if (std::string line = BelowZeroLine(ledger); !line.empty()) absl::StrAppend(&out, "\n", MarkdownCell(line), "\n");
  for (const LedgerCheck& check : ledger.checks) absl::StrAppend(&out, "\n", MarkdownCell(check.text), "\n");
  if (std::string line = AllocatorLine(ledger.allocator); !line.empty())
    absl::StrAppend(&out, "\n", MarkdownCell(line), "\n");
  for (const std::string& advice : ledger.advice) absl::StrAppend(&out, "\n> ", MarkdownCell(advice), "\n");
  for (const std::string& warning : ledger.warnings) absl::StrAppend(&out, "\n> ", MarkdownCell(warning), "\n");
  return out;
}

std::string FormatLedgerAreas(const ProcessMemory& memory, const std::vector<LedgerPiece>& pieces) {
  std::string out = "start,end,row,owner,resident_bytes,file\n";
  for (const LedgerPiece& piece : pieces) {
    absl::StrAppend(&out, absl::Hex(piece.start), ",", absl::Hex(piece.end), ",", CsvCell(LedgerName(piece.use.kind)),
                    ",", CsvCell(piece.use.owner), ",", piece.resident_bytes, ",",
                    CsvCell(memory.areas[piece.area].name), "\n");
  }
  return out;
}

}  // namespace cadastre
