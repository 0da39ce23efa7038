#include "report/cli/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "interposer/options.h"
#include "report/cli/choices.h"
#include "report/process_info.h"
#include "report/text_table.h"

namespace cadastre {

int Fail(absl::string_view message) {
  // One line, whatever a path holds.
  fprintf(stderr, "cadastre: %s\n", SafeText(message).c_str());
  return kExitUnusable;
}

int Fail(const absl::Status& status) { return Fail(status.message()); }

int PrintPieces(absl::FunctionRef<void(TextSink)> write) {
  int error = 0;
  write([&error](absl::string_view piece) {
    if (error == 0 && fwrite(piece.data(), 1, piece.size(), stdout) != piece.size()) error = errno;
  });
  if (error == 0 && fflush(stdout) != 0) error = errno;
  if (error == 0 || error == EPIPE) return kExitDone;
  return Fail(absl::StrCat("cannot write the output: ", strerror(error)));
}

int Print(const std::string& text) {
  return PrintPieces([&](TextSink sink) { sink(text); });
}

SymbolizerOptions DefaultSymbols() { return {.cache = DefaultSymbolCache()}; }

absl::StatusOr<std::unique_ptr<LoadedProfile>> LoadProfile(const std::string& argument, const std::string& rules_flag,
                                                           const SymbolizerOptions& symbols) {
  if (absl::Status status = CheckRoot(symbols.root); !status.ok()) return status;
  auto loaded = std::make_unique<LoadedProfile>();
  absl::StatusOr<ProfilePath> where = FindProfile(argument);
  if (!where.ok()) return where.status();
  loaded->where = *where;
  absl::StatusOr<Profile> profile = ReadProfile(where->path);
  if (!profile.ok()) return profile.status();
  loaded->profile = *std::move(profile);
  if (!where->note.empty()) loaded->profile.warnings.push_back(where->note);
  if (loaded->profile.end == EndState::kRunning && !loaded->profile.is_snapshot && loaded->profile.rss_bytes == 0) {
    pid_t pid = where->pid != 0 ? where->pid
                                : RunningProcessOf(loaded->profile.pid, loaded->profile.pid_namespace,
                                                   loaded->profile.process_start_ticks);
    if (pid != 0) loaded->profile.rss_bytes = ResidentBytesOf(pid);
  }
  absl::StatusOr<OwnerRules> rules = FindOwnerRules(rules_flag);
  if (!rules.ok()) return rules.status();
  loaded->rules = *std::move(rules);
  loaded->symbolizer = std::make_unique<Symbolizer>(loaded->profile, symbols);
  loaded->attribution = std::make_unique<Attribution>(loaded->profile, loaded->rules, loaded->symbolizer.get());
  return loaded;
}

void AddRulesOption(CLI::App* command, std::string* rules) {
  command->add_option("--rules", *rules, "owner rules (default: $CADASTRE_RULES, then ./owners.csv)");
}

void AddSymbolOptions(CLI::App* command, SymbolizerOptions* symbols) {
  command->add_option("--root", symbols->root, "put before every library path, for a container: /proc/PID/root");
  command->add_option_function<std::string>(
      "--symbol-cache", [=](const std::string& place) { symbols->cache = SymbolCacheNamed(place); },
      "directory of names found earlier, or off (default: $CADASTRE_SYMBOL_CACHE, then $XDG_CACHE_HOME/cadastre, then "
      "~/.cache/cadastre)");
}

CLI::Option* AddMinSamplesOption(CLI::App* command, uint64_t* samples) {
  return command
      ->add_option("--min-samples", *samples,
                   "fewer samples than this make a profile unusable (default 200); no matter where every allocation "
                   "was recorded (interval=1)")
      ->check(WholeNumber(0));
}

absl::Status CheckRoot(const std::string& root) {
  struct stat status {};
  if (root.empty()) return absl::OkStatus();
  if (stat(root.c_str(), &status) != 0)
    return absl::NotFoundError(absl::StrCat("--root ", root, ": ", strerror(errno)));
  if (!S_ISDIR(status.st_mode)) return absl::InvalidArgumentError(absl::StrCat("--root ", root, ": no directory"));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  uint64_t bytes = 0;
  if (!ParseSize(text.data(), text.size(), &bytes))
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a size: write 512k, 64m or 1g"));
  return bytes;
}

}  // namespace cadastre
