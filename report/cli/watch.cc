// `cadastre watch`: from another terminal or a sidecar, snapshots of running processes and the profiles of dead ones.
#include <sys/stat.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/cli/command.h"
#include "report/cli/watch_loop.h"

namespace cadastre {
namespace {

struct WatchCommand {
  std::string target, every, keep, at, limit, on_end;
  WatchOptions options;
};

int Watch(WatchCommand& command) {
  absl::StatusOr<WatchSettings> settings =
      ParseWatchSettings(command.every, command.keep, command.at.empty() ? "66,75,90" : command.at, command.limit);
  if (!settings.ok()) return Fail(settings.status());
  command.options.settings = *settings;
  command.options.at_was_asked = !command.at.empty();
  command.options.on_end = absl::StrSplit(command.on_end, ' ', absl::SkipEmpty());
  struct stat status;
  const bool exists = stat(command.target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return WatchDirectory(command.target, command.options);
  int pid = 0;
  if (!absl::SimpleAtoi(command.target, &pid) || pid <= 0)
    return Fail(absl::StrCat(command.target, exists ? ": neither a PID nor a directory" : ": no such directory"));
  return WatchProcess(pid, command.options);
}

}  // namespace

void AddWatchCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<WatchCommand>();
  CLI::App* command = app.add_subcommand("watch", "snapshots of running processes, and what dead ones left");
  command->add_option("PID|DIR", options->target, "a recorded process, or where profiles are")->required();
  command->add_option("--every", options->every, "a periodic snapshot each so often, as in 10m");
  command->add_option("--keep", options->keep, "this many of the periodic ones (default 144)");
  command->add_option("--at", options->at,
                      "a snapshot when memory reaches these percentages of its limit (default 66,75,90)");
  command->add_option("--limit", options->limit,
                      "RSS that counts as 100 % (default: the cgroup's working set against its limit)");
  command->add_option(
      "--on-end", options->on_end,
      "command and words, without quotes: run with the path of each saved profile as its last argument");
  command->add_option("--exe", options->options.exe, "in a directory: programs whose name matches, as in java*");
  command->add_option("-o,--output", options->options.output,
                      "move what dead processes left there, and put snapshots there (default: all stays where it is)");
  command->footer(
      "Keeps @peak, the highest RSS seen. Prints the path of each saved profile. Ends with the process, or at "
      "SIGTERM.\n"
      "Example: cadastre watch /profiles --every 10m --keep 144 --exe java -o /data");
  command->callback([=] { invocation->status = Watch(*options); });
}

}  // namespace cadastre
