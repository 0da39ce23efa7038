// The runtime-neutral roll-up: bytes of the heap by class, and collapsed stacks, summed by the modules and teams of a
// rules file.
//
// A row of the heap falls to the longest prefix of its class (file order breaks ties); platform modules are a bucket of
// their own. A stack falls to its first owned frame from the leaf (stack_walk). Bytes of a class whose rule is of kind
// container or pool are divided among those who created what lies in it, as the samples of the stacks through that
// container are (Hamilton's method: bytes stay whole numbers and add up); without such a stack they stay with the
// holder. Only the given rules count: built-in ones change with the version, and two runs must compare.
// Units: bytes, samples. Invariant: bytes, held bytes and samples each add up to their total over the rows, the
// unattributed one included. Errors: a Status "FILE:LINE: what". Memory: bounded by rules and distinct classes'
// packages, not by the inputs. Thread-safety: none.
//
// Example: absl::StatusOr<Rollup> rollup = RollUp(rules, "heap.csv", "stacks.txt");
#ifndef CADASTRE_REPORT_ROLLUP_H_
#define CADASTRE_REPORT_ROLLUP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/heap_classes.h"
#include "symbolizer/owner_rules.h"

namespace cadastre {

struct RollupRow {
  std::string name;         // module or team; empty = the rules name no team
  std::string team;         // modules only; several are joined by ", "
  uint64_t bytes = 0;       // of the heap; what lies in containers by who created it
  uint64_t held_bytes = 0;  // of the heap, as the table of classes has it
  uint64_t samples = 0;     // of the stacks, by first owned frame
};

struct RollupContainer {
  std::string holder;
  bool pool = false;
  uint64_t held_bytes = 0;
  uint64_t samples = 0;             // of the stacks through it; 0: nobody knows who created what lies in it
  std::vector<RollupRow> creators;  // bytes and samples; heaviest first
};

struct RollupSuggestion {
  std::string prefix;
  uint64_t bytes = 0, samples = 0;
};

struct Rollup {
  std::string rules_path, heap_path, stacks_path;
  HeapMeasure measure = HeapMeasure::kRetained;
  uint64_t bytes = 0, samples = 0, classes = 0, stacks = 0;
  std::vector<RollupRow> modules;  // heaviest first, the unattributed row last
  std::vector<RollupRow> teams;
  std::vector<RollupContainer> containers;
  std::vector<RollupSuggestion> suggestions;  // of what has no owner, heaviest first, a few
  std::vector<std::string> warnings;          // "FILE: what": inputs that are not whole

  const RollupRow& Unattributed() const { return modules.back(); }
  bool HasBytes() const { return bytes > 0; }
  double SharePercent(const RollupRow& row) const;         // of the bytes
  double SamplesSharePercent(const RollupRow& row) const;  // of the samples
  // What the limit is held against: the share of the bytes, or of the samples where there are no bytes.
  double UnattributedPercent() const;
};

absl::StatusOr<Rollup> RollUp(const OwnerRules& rules, const std::string& heap_path, const std::string& stacks_path);

// `limit_percent` is printed beside what it is held against. JSON: schema "cadastre.rollup/1".
std::string FormatRollupText(const Rollup& rollup, double limit_percent);
std::string FormatRollupMarkdown(const Rollup& rollup, double limit_percent);
std::string FormatRollupCsv(const Rollup& rollup);
std::string FormatRollupJson(const Rollup& rollup, double limit_percent);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ROLLUP_H_
