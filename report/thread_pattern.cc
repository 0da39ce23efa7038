#include "report/thread_pattern.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "report/function_name.h"

namespace cadastre {
namespace {

constexpr size_t kKernelNameLength = 15;
// "md5", "utf8" and "sha256" are names; "exec1", "Thread0" and "worker12" are one of several.
constexpr size_t kWordLetters = 4;

bool IsSeparator(char c) { return !absl::ascii_isalnum(c); }

absl::string_view WordBefore(absl::string_view name, size_t end) {
  size_t begin = end;
  while (begin > 0 && absl::ascii_isalpha(name[begin - 1])) begin--;
  return name.substr(begin, end - begin);
}

// A number between separators: a port, or the number of a pool?
bool MayBePort(absl::string_view digits, absl::string_view word) {
  if (absl::EndsWithIgnoreCase(word, "pool") || absl::EndsWithIgnoreCase(word, "group")) return false;
  int number;
  if (!absl::SimpleAtoi(digits, &number)) return false;
  return number == 80 || number == 443 || (number >= 1024 && number <= 65535);
}

bool IsCounter(absl::string_view name, size_t begin, size_t end, bool follows_counter) {
  if (begin == 0) return false;
  const bool at_end = end == name.size();
  if (!at_end && !IsSeparator(name[end])) return false;
  const char before = name[begin - 1];
  if (!IsSeparator(before)) return at_end && WordBefore(name, begin).size() >= kWordLetters;
  // "x86_64" and "python3.11" are names, "stage_1_2" and "pool-1.2" count.
  const bool joins = (before == '_' || before == '.') && begin >= 2 && absl::ascii_isdigit(name[begin - 2]);
  if (joins && !follows_counter) return false;
  return at_end || !MayBePort(name.substr(begin, end - begin), WordBefore(name, begin - 1));
}

}  // namespace

std::string UnnamedThreadName(const Profile& profile) {
  for (const Thread& thread : profile.threads) {
    if (thread.tid == profile.pid && !thread.name.empty()) return thread.name;
  }
  return std::string(FileName(profile.exe).substr(0, kKernelNameLength));
}

std::string ThreadPattern(absl::string_view name, absl::string_view unnamed) {
  if (name == unnamed) return std::string(name);
  std::string pattern;
  bool counter = false;
  for (size_t at = 0; at < name.size();) {
    if (!absl::ascii_isdigit(name[at])) {
      pattern += name[at++];
      continue;
    }
    size_t end = at;
    while (end < name.size() && absl::ascii_isdigit(name[end])) end++;
    counter = IsCounter(name, at, end, counter);
    if (counter) {
      pattern += '*';
    } else {
      pattern.append(name.data() + at, end - at);
    }
    at = end;
  }
  return pattern;
}

}  // namespace cadastre
