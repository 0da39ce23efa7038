// Growth → text, JSON (schema "cadastre.diff/1"), CSV, Markdown. Every format prints the same rows.
//
// Thread-safety: pure. Errors: none.
//
// Example: std::fputs(FormatGrowthText(growth, GrowthBy::kModule, 10, style).c_str(), stdout);
#ifndef CADASTRE_REPORT_FORMAT_GROWTH_H_
#define CADASTRE_REPORT_FORMAT_GROWTH_H_

#include <optional>
#include <string>

#include "report/growth.h"
#include "report/json_writer.h"
#include "report/text_table.h"

namespace cadastre {

enum class GrowthBy { kModule, kTeam, kSite };

std::string FormatGrowthText(const Growth& growth, GrowthBy by, size_t top, const TextStyle& style);
// `top` limits the sites; modules and teams are all there.
void WriteGrowthJson(const Growth& growth, std::optional<size_t> top, TextSink sink);
void WriteGrowthCsv(const Growth& growth, GrowthBy by, std::optional<size_t> top, TextSink sink);
std::string FormatGrowthMarkdown(const Growth& growth, GrowthBy by, size_t top);

// "+1.94 GiB ±0.03", "-4 MiB ±9".
std::string DeltaText(double bytes, double error);
// "steady growth, 3.0 GiB/h"; empty without a verdict.
std::string VerdictText(const Verdict& verdict);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_FORMAT_GROWTH_H_
