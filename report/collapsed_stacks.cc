#include "report/collapsed_stacks.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/text_file.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr size_t kShownBytes = 40;

std::string Shown(std::string_view text) {
  return SafeText(std::string(text.substr(0, kShownBytes)) + (text.size() > kShownBytes ? "…" : ""));
}

// What is wrong with a line; empty: nothing.
std::string Split(std::string_view line, std::string_view* frames, uint64_t* count) {
  size_t blank = line.find_last_of(kBlanks);
  std::string_view number = blank == std::string_view::npos ? line : line.substr(blank + 1);
  if (number.find_first_not_of("0123456789") != std::string_view::npos)
    return absl::StrCat("a stack ends with a blank and a count, a whole number, not \"", Shown(number), "\"");
  if (!absl::SimpleAtoi(std::string(number), count)) return absl::StrCat("the count ", Shown(number), " is too large");
  size_t last = blank == std::string_view::npos ? blank : line.find_last_not_of(kBlanks, blank);
  if (last == std::string_view::npos) return "a count without a stack";
  *frames = line.substr(0, last + 1);
  // async-profiler's way to write a stack of which it knows the leaf alone.
  if (frames->size() > 1 && frames->front() == ';') frames->remove_prefix(1);
  if (frames->front() == ';' || frames->back() == ';' || frames->find(";;") != std::string_view::npos)
    return "an empty frame";
  return "";
}

}  // namespace

absl::Status ReadCollapsedStacks(const std::string& path, const std::function<absl::Status(CollapsedStack)>& take) {
  absl::StatusOr<TextFile> file = TextFile::Open(path);
  if (!file.ok()) return file.status();
  while (file->Next()) {
    std::string_view line = file->line();
    size_t first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos) continue;
    line = line.substr(first, line.find_last_not_of(kBlanks) + 1 - first);
    std::string_view frames;
    uint64_t count = 0;
    if (std::string wrong = Split(line, &frames, &count); !wrong.empty()) return file->Error(wrong);
    if (absl::Status status = take({frames, count}); !status.ok()) return file->Error(std::string(status.message()));
  }
  return file->status();
}

}  // namespace cadastre
