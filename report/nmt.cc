#include "report/nmt.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxBytes = 1ull << 57;

// "1628518KB", "12345B", "12345" → bytes; takes it from the front of `text`.
std::optional<uint64_t> TakeAmount(absl::string_view* text) {
  size_t digits = 0;
  while (digits < text->size() && absl::ascii_isdigit(static_cast<unsigned char>((*text)[digits]))) digits++;
  uint64_t value = 0;
  if (digits == 0 || digits > 18 || !absl::SimpleAtoi(text->substr(0, digits), &value)) return std::nullopt;
  text->remove_prefix(digits);
  uint64_t unit = 1;
  if (absl::ConsumePrefix(text, "KB"))
    unit = 1ull << 10;
  else if (absl::ConsumePrefix(text, "MB"))
    unit = 1ull << 20;
  else if (absl::ConsumePrefix(text, "GB"))
    unit = 1ull << 30;
  else
    absl::ConsumePrefix(text, "B");
  return value <= kMaxBytes / unit ? std::optional<uint64_t>(value * unit) : std::nullopt;
}

// The amount behind `key` in `text`; 0 = it is not there.
uint64_t AmountAfter(absl::string_view text, absl::string_view key) {
  const size_t at = text.find(key);
  if (at == absl::string_view::npos) return 0;
  text.remove_prefix(at + key.size());
  return TakeAmount(&text).value_or(0);
}

// "[0x00007f11a7000000 - 0x00007f11ab000000] reserved and committed 65536KB for Metaspace from"
std::optional<NmtRange> ParseRange(absl::string_view line) {
  NmtRange range;
  if (!absl::ConsumePrefix(&line, "[0x")) return std::nullopt;
  const size_t dash = line.find(" - 0x"), close = line.find("] reserved");
  if (dash == absl::string_view::npos || close == absl::string_view::npos || close < dash + 5) return std::nullopt;
  if (!absl::SimpleHexAtoi(line.substr(0, dash), &range.start) ||
      !absl::SimpleHexAtoi(line.substr(dash + 5, close - dash - 5), &range.end) || range.start >= range.end)
    return std::nullopt;
  const size_t what = line.find(" for ", close);
  if (what == absl::string_view::npos) return std::nullopt;
  absl::string_view name = line.substr(what + 5);
  name = name.substr(0, name.find(" from"));
  range.category = std::string(absl::StripAsciiWhitespace(name));
  return range;
}

// "-                     Class (reserved=1048759KB, committed=439KB)"
std::optional<NmtCategory> ParseCategory(absl::string_view line) {
  if (!absl::ConsumePrefix(&line, "-")) return std::nullopt;
  const size_t open = line.find("(reserved=");
  if (open == absl::string_view::npos) return std::nullopt;
  NmtCategory category;
  category.name = std::string(absl::StripAsciiWhitespace(line.substr(0, open)));
  category.reserved_bytes = AmountAfter(line, "reserved=");
  category.committed_bytes = AmountAfter(line, "committed=");
  return category;
}

}  // namespace

uint64_t NmtReport::MallocBytes() const {
  uint64_t sum = 0;
  for (const NmtCategory& category : categories) sum += category.malloc_bytes + category.arena_bytes;
  return sum;
}

uint64_t NmtReport::MallocBlocks() const {
  uint64_t sum = 0;
  for (const NmtCategory& category : categories) sum += category.malloc_blocks;
  return sum;
}

absl::StatusOr<NmtReport> ParseNmt(absl::string_view text) {
  NmtReport report;
  bool seen_total = false, in_categories = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (absl::StartsWith(line, "Total:") && !seen_total) {
      seen_total = in_categories = true;
      report.reserved_bytes = AmountAfter(line, "reserved=");
      report.committed_bytes = AmountAfter(line, "committed=");
      continue;
    }
    if (std::optional<NmtCategory> category = ParseCategory(line); category.has_value() && in_categories) {
      report.categories.push_back(*std::move(category));
      continue;
    }
    if (std::optional<NmtRange> range = ParseRange(line); range.has_value()) {
      report.ranges.push_back(*std::move(range));
      continue;
    }
    if (absl::StrContains(line, "memory map:") || absl::StartsWith(line, "Details:")) in_categories = false;
    absl::string_view facts = absl::StripLeadingAsciiWhitespace(line);
    if (!in_categories || report.categories.empty()) continue;
    NmtCategory& category = report.categories.back();
    if (absl::StartsWith(facts, "(arena=")) category.arena_bytes += AmountAfter(facts, "(arena=");
    // "(malloc=29307KB tag=Other #402) (at peak)"
    if (absl::StartsWith(facts, "(malloc=")) {
      category.malloc_bytes += AmountAfter(facts, "(malloc=");
      category.malloc_blocks += AmountAfter(facts, "#");
    }
  }
  if (!seen_total) {
    absl::string_view first = text.substr(0, text.find('\n'));
    return absl::InvalidArgumentError(std::string(absl::StripAsciiWhitespace(first.substr(0, 100))));
  }
  return report;
}

size_t EndOfNmtCategories(absl::string_view text) {
  size_t end = text.size();
  for (const char* heading : {"\nVirtual memory map:", "\nDetails:"}) end = std::min(end, text.find(heading));
  return end;
}

std::string NmtWithSummary(absl::string_view detail, absl::string_view summary) {
  return absl::StrCat(summary.substr(0, EndOfNmtCategories(summary)), detail.substr(EndOfNmtCategories(detail)));
}

}  // namespace cadastre
