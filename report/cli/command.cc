#include "report/cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "report/process_info.h"
#include "report/text_table.h"

namespace cadastre {

int Fail(absl::string_view message) {
  // One line, whatever a path holds.
  fprintf(stderr, "cadastre: %s\n", SafeText(message).c_str());
  return kExitUnusable;
}

int Fail(const absl::Status& status) { return Fail(status.message()); }

int Print(const std::string& text) {
  bool written = fwrite(text.data(), 1, text.size(), stdout) == text.size() && fflush(stdout) == 0;
  if (written || errno == EPIPE) return kExitDone;
  return Fail(absl::StrCat("cannot write the output: ", strerror(errno)));
}

absl::StatusOr<std::unique_ptr<LoadedProfile>> LoadProfile(const std::string& argument, const std::string& rules_flag,
                                                           const std::string& root) {
  auto loaded = std::make_unique<LoadedProfile>();
  absl::StatusOr<ProfilePath> where = FindProfile(argument);
  if (!where.ok()) return where.status();
  loaded->where = *where;
  absl::StatusOr<Profile> profile = ReadProfile(where->path);
  if (!profile.ok()) return profile.status();
  loaded->profile = *std::move(profile);
  if (loaded->profile.end == EndState::kRunning && !loaded->profile.is_snapshot && loaded->profile.rss_bytes == 0) {
    pid_t pid = where->pid != 0 ? where->pid
                                : RunningProcessOf(loaded->profile.pid, loaded->profile.pid_namespace,
                                                   loaded->profile.process_start_ticks);
    if (pid != 0) loaded->profile.rss_bytes = ResidentBytesOf(pid);
  }
  absl::StatusOr<OwnerRules> rules = FindOwnerRules(rules_flag);
  if (!rules.ok()) return rules.status();
  loaded->rules = *std::move(rules);
  loaded->symbolizer = std::make_unique<Symbolizer>(loaded->profile, SymbolizerOptions{.root = root});
  loaded->attribution = std::make_unique<Attribution>(loaded->profile, loaded->rules, loaded->symbolizer.get());
  return loaded;
}

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  size_t end = text.find_first_not_of("0123456789");
  uint64_t number = 0;
  std::string unit = end == std::string::npos ? "" : absl::AsciiStrToLower(text.substr(end));
  int shift = unit.empty() || unit == "b"                    ? 0
              : unit == "k" || unit == "ki" || unit == "kib" ? 10
              : unit == "m" || unit == "mi" || unit == "mib" ? 20
              : unit == "g" || unit == "gi" || unit == "gib" ? 30
                                                             : -1;
  if (end == 0 || shift < 0 || !absl::SimpleAtoi(text.substr(0, end), &number) || (number >> (63 - shift)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a size: write 512k, 64m or 1g"));
  }
  return number << shift;
}

}  // namespace cadastre
