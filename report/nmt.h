// The text of `jcmd PID VM.native_memory summary|detail` → figures and ranges.
//
// Shapes differ between JDK versions (8 to 25); lines that are not known are passed over. Units: bytes, whatever scale
// the text has. Errors: the text is not NMT's ("Native memory tracking is not enabled" is such a text). Thread-safety:
// pure functions.
//
// Example: absl::StatusOr<NmtReport> nmt = ParseNmt(memory.nmt);
#ifndef CADASTRE_REPORT_NMT_H_
#define CADASTRE_REPORT_NMT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cadastre {

struct NmtCategory {
  std::string name;  // "Java Heap", "Class", ...
  uint64_t reserved_bytes = 0, committed_bytes = 0;
  uint64_t malloc_bytes = 0, malloc_blocks = 0;  // what it asked for, without NMT's own headers
  uint64_t arena_bytes = 0;                      // chunks of arenas, which are blocks too but are not counted
};

// A reserved range of the detail report.
struct NmtRange {
  uint64_t start = 0, end = 0;
  std::string category;
};

struct NmtReport {
  uint64_t reserved_bytes = 0, committed_bytes = 0;
  std::vector<NmtCategory> categories;
  std::vector<NmtRange> ranges;

  uint64_t MallocBytes() const;  // arenas included
  uint64_t MallocBlocks() const;
};

// With tracking on, each block is this much larger: a header of 16 bytes and a footer of 2 (JDK 11 and later).
inline constexpr uint64_t kNmtBytesPerBlock = 18;

absl::StatusOr<NmtReport> ParseNmt(absl::string_view text);

// Where the categories of the summary end: before the maps and call sites of a detail report, else the text's end.
size_t EndOfNmtCategories(absl::string_view text);

// The detail report with the figures of a summary in place of its own.
std::string NmtWithSummary(absl::string_view detail, absl::string_view summary);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_NMT_H_
