// Rows → bytes. Every format prints the same rows of report/rows.h.
//
// Thread-safety: pure functions. Errors: none.
//
// Example: std::fputs(FormatText(report, {.style = StyleForDescriptor(1), .top = 10}).c_str(), stdout);
#ifndef CADASTRE_REPORT_FORMAT_H_
#define CADASTRE_REPORT_FORMAT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "report/json_writer.h"
#include "report/rows.h"
#include "report/text_table.h"

namespace cadastre {

struct TextOptions {
  TextStyle style;
  size_t top = 10;     // rows of the table; the rest is one line that says how much it is
  bool brief = false;  // what `cadastre run` prints at exit: both peak and end, no stacks
};

// At most kTextWidth columns.
std::string FormatText(const Report& report, const TextOptions& options);

// Schema "cadastre.report/1": all keys are always there, what is not known is null. `top` limits `sites` alone: the
// other rows add up.
void WriteJson(const Report& report, std::optional<size_t> top, TextSink sink);

// The rows that --by names, RFC 4180 with a header line, the unattributed row included.
void WriteCsv(const Report& report, std::optional<size_t> top, TextSink sink);
std::string FormatMarkdown(const Report& report, std::optional<size_t> top);

// Shared by text and markdown.
std::string MethodLine(const Report& report);  // "losses 0 · sampled, live bytes by ..., 512 KiB, 9,412 samples"
// "in platform: 70.0 MiB, created by billing 40.0 MiB, search 25.0 MiB, auth 5.00 MiB"
std::string SharedLine(const SharedRow& shared, Metric metric);
std::string EndText(const Profile& profile);  // "running", "ended: exit 0", "ended: signal 9 (SIGKILL)", ...
// Nobody saw the end, or it was a SIGKILL, and memory was near its limit or the cgroup counted an OOM kill.
enum class OomKill { kNo, kLikely, kCounted };
OomKill OomKillOf(const Profile& profile);
std::string EndWord(const Profile& profile);  // "running|exit|signal:N|exec|lost"
std::string TimeText(uint64_t realtime_ns);   // "2026-01-01T00:00:00Z"

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FORMAT_H_
