// The RSS ledger: rows that add up to the process's Rss exactly, each with an owner or an honest name.
//
// Invariant: over `rows`, resident bytes add up to rss_bytes, which is the sum of Rss over the smaps that was read; the
// last row is the unexplained one. Rows that rest on samples have an error: what is live in malloc, and the allocator's
// retention, which is what is resident in its mappings less that (so it may come out below zero by about its error).
// Blocks that were never touched are live and not resident: `resident` counts pages that are there, `virtual` all.
// Units: bytes. Errors: none. Thread-safety: plain values.
//
// Example:
//   Ledger ledger = BuildLedger(*memory, {.profile = &profile, .attribution = &attribution});
//   std::cout << FormatLedgerText(ledger, style, 10);
#ifndef CADASTRE_REPORT_LEDGER_H_
#define CADASTRE_REPORT_LEDGER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/attribution.h"
#include "report/ledger_areas.h"
#include "report/text_table.h"
#include "report/thread_stacks.h"
#include "symbolizer/process_memory.h"
#include "symbolizer/profile.h"

namespace cadastre {

struct LedgerRow {
  LedgerKind kind = LedgerKind::kUnexplained;
  std::string owner, team;
  bool guessed = false;
  // May be below zero by an estimate's error (retention), so that rows add up.
  int64_t virtual_bytes = 0, committed_bytes = 0, resident_bytes = 0, shared_bytes = 0;
  bool estimate = false;  // it rests on samples
  double variance = 0;    // of resident_bytes, bytes^2
  double StandardError() const;
};

// One comparison with what somebody else counts.
struct LedgerCheck {
  std::string name;  // "top RES", "cgroup working set", "Java heap once", "NMT committed", "NMT malloc"
  int64_t ledger_bytes = 0, other_bytes = 0;
  int64_t explained_bytes = 0;  // of other - ledger: `text` says what it is
  std::string text;             // one line
};

struct Ledger {
  uint32_t pid = 0;
  std::string program;
  uint64_t taken_realtime_ns = 0;
  uint64_t rss_bytes = 0;
  bool recorded = false;
  bool exact = false;  // every allocation was recorded: no errors to show
  std::vector<LedgerRow> rows;
  std::vector<LedgerCheck> checks;
  std::vector<ThreadStack> threads;  // that live; their stacks are parts of rows
  AllocatorState allocator;          // its own words, beside the rows: they are of another moment, and part of none
  std::vector<std::string> advice;
  std::vector<std::string> warnings;
  // "RSS 3.97 GiB at 10:59 UTC: Java heap 1.02 · native live 2.41 ±0.03 · ..."; units are those of the RSS.
  std::string summary;

  LedgerRow Sum(LedgerKind kind) const;
};

Ledger BuildLedger(const ProcessMemory& memory, const LedgerInputs& inputs);

// Parts of BuildLedger (ledger_notes.cc).
void AddLedgerChecks(const ProcessMemory& memory, const LedgerInputs& inputs, const std::vector<LedgerPiece>& pieces,
                     Ledger* ledger);
void AddLedgerAdvice(const ProcessMemory& memory, const LedgerInputs& inputs, const std::vector<LedgerPiece>& pieces,
                     Ledger* ledger);
std::string LedgerSummary(const Ledger& ledger);
std::string AllocatorLine(const AllocatorState& state);  // empty: not known
// What people are told where the estimate of retention is below zero and they are shown 0; empty: it is not.
std::string BelowZeroLine(const Ledger& ledger);

// Rows of a kind beyond `top` owners are one line. At most kTextWidth columns.
std::string FormatLedgerText(const Ledger& ledger, const TextStyle& style, size_t top);
std::string FormatLedgerJson(const Ledger& ledger);  // schema "cadastre.rss/1"
// For the report: as above with one row of each name, whoever owns what is in it, and neither checks nor advice.
std::string LedgerSummaryJson(const Ledger& ledger);
std::string FormatLedgerCsv(const Ledger& ledger);
std::string FormatLedgerMarkdown(const Ledger& ledger);
// Each thread's stack, with the stack that created the thread; of the JSON formats it is the member "threads".
std::string FormatThreadStacksText(const Ledger& ledger, const TextStyle& style);
std::string FormatThreadStacksCsv(const Ledger& ledger);
std::string ThreadStacksJson(const Ledger& ledger, absl::string_view indent);
// Each piece of the address space as CSV: start and end in hex, its row, owner, resident bytes and the area's name.
std::string FormatLedgerAreas(const ProcessMemory& memory, const std::vector<LedgerPiece>& pieces);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LEDGER_H_
