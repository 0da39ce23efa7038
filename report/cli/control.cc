// `cadastre pause|resume|set`: words in the header of a live profile, which the target reads at most every 1 MiB that a
// thread allocates.
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/live_file.h"

namespace cadastre {
namespace {

struct ControlCommand {
  std::string profile, interval, setting;
};

int Control(const ControlCommand& command, std::optional<bool> paused) {
  absl::StatusOr<ProfilePath> where = FindProfile(command.profile);
  if (!where.ok()) return Fail(where.status());
  absl::StatusOr<Profile> profile = ReadProfile(where->path);
  if (!profile.ok()) return Fail(profile.status());
  if (profile->is_snapshot || profile->end != EndState::kRunning) {
    return Fail(absl::StrCat(where->path,
                             ": nothing to control: ", profile->is_snapshot ? "a snapshot" : "the process has ended"));
  }
  ControlChange change;
  change.paused = paused;
  if (!command.interval.empty()) {
    if (command.interval == "0")
      return Fail("--interval 0: no sample would ever be due; `cadastre pause` stops sampling");
    if (absl::Status status = CheckTargetOption("interval", command.interval); !status.ok()) return Fail(status);
    absl::StatusOr<uint64_t> interval = ParseSize(command.interval);
    if ((*interval == 1) != profile->exact()) {
      return Fail(absl::StrCat("--interval ", command.interval,
                               ": recording every allocation is decided at start (interval=1), not while it runs"));
    }
    change.interval_bytes = *interval;
  }
  absl::Status status = WriteControl(where->path, change);
  return status.ok() ? kExitDone : Fail(status);
}

// "interval=2m", as the option is written elsewhere, is --interval 2m.
int Set(ControlCommand command) {
  constexpr absl::string_view kInterval = "interval=";
  if (command.setting.empty() == command.interval.empty())
    return Fail("set: say the interval, once: cadastre set PID interval=2m");
  if (!command.setting.empty()) {
    if (!absl::StartsWith(command.setting, kInterval))
      return Fail(absl::StrCat("set ", command.setting, ": only interval=SIZE can be set while a process runs"));
    command.interval = command.setting.substr(kInterval.size());
    if (command.interval.empty()) return Fail("set interval=: say how many bytes, as in interval=2m");
  }
  return Control(command, std::nullopt);
}

}  // namespace

void AddControlCommands(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<ControlCommand>();
  CLI::App* pause = app.add_subcommand("pause", "stops sampling in a running process; frees are still seen");
  pause->add_option("PID", options->profile, "PID or live profile")->required();
  pause->footer("Example: cadastre pause 4242");
  pause->callback([=] { invocation->status = Control(*options, true); });
  CLI::App* resume = app.add_subcommand("resume", "samples again");
  resume->add_option("PID", options->profile, "PID or live profile")->required();
  resume->footer("Example: cadastre resume 4242");
  resume->callback([=] { invocation->status = Control(*options, false); });
  CLI::App* set = app.add_subcommand("set", "changes the interval of a running process");
  set->add_option("PID", options->profile, "PID or live profile")->required();
  set->add_option("SETTING", options->setting, "interval=SIZE: mean bytes between samples from now on: 512k, 1m");
  set->add_option("--interval", options->interval, "the same");
  set->footer("Example: cadastre set 4242 interval=2m");
  set->callback([=] { invocation->status = Set(*options); });
}

}  // namespace cadastre
