#include "report/smaps.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace cadastre {
namespace {

constexpr uint64_t kKiBBytes = 1024;
constexpr uint64_t kMaxFieldKiB = 1ull << 47;  // what five-level paging can address

bool Hex(absl::string_view text, uint64_t* value) {
  return !text.empty() && text.size() <= 16 && absl::SimpleHexAtoi(text, value);
}

// Takes what stands before the next run of spaces, and the spaces.
absl::string_view NextWord(absl::string_view* line) {
  const size_t end = std::min(line->find(' '), line->size());
  absl::string_view word = line->substr(0, end);
  *line = absl::StripLeadingAsciiWhitespace(line->substr(end));
  return word;
}

// "7f12a000-7f12b000 rw-p 00000000 08:01 1234    /path with spaces"
bool ParseHead(absl::string_view line, MemoryArea* area) {
  absl::string_view range = NextWord(&line), permissions = NextWord(&line), offset = NextWord(&line);
  NextWord(&line);  // device
  const absl::string_view inode = NextWord(&line);
  const size_t dash = range.find('-');
  if (dash == absl::string_view::npos || permissions.size() != 4 || !Hex(range.substr(0, dash), &area->start) ||
      !Hex(range.substr(dash + 1), &area->end) || area->start >= area->end || !Hex(offset, &area->offset) ||
      !absl::SimpleAtoi(inode, &area->inode)) {
    return false;
  }
  area->readable = permissions[0] == 'r';
  area->writable = permissions[1] == 'w';
  area->executable = permissions[2] == 'x';
  area->shared = permissions[3] == 's';
  area->name = std::string(line);
  return true;
}

// "Rss:     4 kB". False: the number is none.
bool TakeField(absl::string_view name, absl::string_view value, MemoryArea* area) {
  if (name == "VmFlags") {  // "VmFlags: rd wr mr mw me nr"
    for (absl::string_view flag : absl::StrSplit(value, ' ')) {
      area->noreserve |= flag == "nr";
      area->grows_down |= flag == "gd";
    }
    return true;
  }
  uint64_t* field = name == "Rss"             ? &area->rss_bytes
                    : name == "Pss"           ? &area->pss_bytes
                    : name == "Anonymous"     ? &area->anonymous_bytes
                    : name == "AnonHugePages" ? &area->huge_bytes
                    : name == "Swap"          ? &area->swap_bytes
                                              : nullptr;
  const bool shared = name == "Shared_Clean" || name == "Shared_Dirty";
  const bool owned = name == "Private_Clean" || name == "Private_Dirty";
  if (field == nullptr && !shared && !owned) return true;
  uint64_t kib = 0;
  value = absl::StripAsciiWhitespace(value);
  if (!absl::ConsumeSuffix(&value, " kB") || !absl::SimpleAtoi(absl::StripAsciiWhitespace(value), &kib) ||
      kib > kMaxFieldKiB)
    return false;
  if (field != nullptr) *field = kib * kKiBBytes;
  if (shared) area->shared_bytes += kib * kKiBBytes;
  if (owned) area->private_bytes += kib * kKiBBytes;
  return true;
}

}  // namespace

absl::StatusOr<std::vector<MemoryArea>> ParseSmaps(absl::string_view text, const std::string& name) {
  std::vector<MemoryArea> areas;
  size_t number = 0;
  auto error = [&](absl::string_view what) { return absl::DataLossError(absl::StrCat(name, ":", number, ": ", what)); };
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    number++;
    if (line.empty()) continue;
    // A field's name begins with a capital letter, an address never does.
    const size_t colon = line.find(':');
    if (line[0] >= 'A' && line[0] <= 'Z' && colon != absl::string_view::npos) {
      if (areas.empty()) return error("a field before the first mapping");
      if (!TakeField(line.substr(0, colon), line.substr(colon + 1), &areas.back())) return error("not a number of kB");
      continue;
    }
    MemoryArea area;
    if (!ParseHead(line, &area)) return error("not a mapping");
    if (!areas.empty() && area.start < areas.back().end) return error("mappings are out of order");
    areas.push_back(std::move(area));
  }
  for (const MemoryArea& area : areas) {
    if (area.rss_bytes > area.end - area.start)
      return absl::DataLossError(absl::StrCat(name, ": more is resident than is mapped at ", absl::Hex(area.start)));
  }
  return areas;
}

}  // namespace cadastre
