// `cadastre run`: starts a program with the interposer in front of it, keeps its profile, says at the end who owned the
// memory.
//
// The program's stdout, stderr and exit status stay its own; everything of ours goes to stderr.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/cli/child_process.h"
#include "report/cli/command.h"
#include "report/cli/live_file_watch.h"
#include "report/executable_facts.h"
#include "report/format.h"
#include "report/live_file.h"
#include "report/output_file.h"
#include "report/preload.h"
#include "report/profile_copy.h"

namespace cadastre {
namespace {

struct RunCommand {
  std::map<std::string, std::string> options;  // those of CADASTRE_OPTIONS that have one value
  std::vector<std::string> labels;
  std::string output, rules;
  bool quiet = false;
};

// One option that has the same name as a flag here and as a word in CADASTRE_OPTIONS.
struct TargetOption {
  const char* name;
  const char* help;
  bool size;  // checked here, so that a slip costs nothing but a message
};
constexpr TargetOption kTargetOptions[] = {
    {"interval", "mean bytes between samples (default 512k); 1 records every allocation", true},
    {"out", "directory of the live file (default /dev/shm, else $XDG_RUNTIME_DIR)", false},
    {"memory", "largest size of the profile (default 64m or a quarter of the free space)", true},
    {"exe", "record only programs whose name matches", false},
    {"min-life", "a clean exit sooner than this leaves no profile", false},
    {"keep", "remove dead profiles of the same program beyond this many", false},
    {"children", "yes, no or a pattern: programs that the program starts", false},
    {"start", "now or paused", false},
    {"seed", "makes sampling repeatable", false},
    {"mode", "permissions of the profile (default 600)", false},
    {"command", "exe, full or none: what of the command line is kept", false},
    {"expect", "the allocator that should serve malloc, e.g. jemalloc", false},
};

void Say(absl::string_view line) { fprintf(stderr, "cadastre: %s\n", SafeText(line).c_str()); }

// "interval=64k,out=DIR,label=K:V"; an error for what cannot be said there.
absl::StatusOr<std::string> OptionsText(const RunCommand& command) {
  std::string text;
  auto add = [&](const std::string& name, const std::string& value) -> absl::Status {
    if (value.find(',') != std::string::npos)
      return absl::InvalidArgumentError(absl::StrCat("--", name, " ", value, ": a comma cannot stand in an option"));
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=", value);
    return absl::OkStatus();
  };
  for (const TargetOption& option : kTargetOptions) {
    auto given = command.options.find(option.name);
    if (given == command.options.end()) continue;
    if (option.size) {
      absl::StatusOr<uint64_t> size = ParseSize(given->second);
      if (!size.ok()) return absl::InvalidArgumentError(absl::StrCat("--", option.name, ": ", size.status().message()));
    }
    if (absl::Status status = add(option.name, given->second); !status.ok()) return status;
  }
  for (const std::string& label : command.labels) {
    if (absl::Status status = add("label", label); !status.ok()) return status;
  }
  return text;
}

// The live file's directory: the flag, else the environment's option, else the default. Absolute, for the program may
// change its directory.
absl::StatusOr<std::string> LiveDirectory(const std::string& options) {
  const char* inherited = getenv("CADASTRE_OPTIONS");
  std::string directory = OptionValue(options, "out");
  if (directory.empty() && inherited != nullptr) directory = OptionValue(inherited, "out");
  if (directory.empty()) directory = DefaultLiveDirectory();
  struct stat status;
  if (stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return absl::NotFoundError(absl::StrCat("cannot record to ", directory, ": not a directory"));
  }
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return absl::PermissionDeniedError(absl::StrCat("cannot record to ", directory, ": permission denied"));
  char* absolute = realpath(directory.c_str(), nullptr);
  std::string path = absolute != nullptr ? absolute : directory;
  free(absolute);
  if (path.find(',') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("cannot record to ", path, ": a comma cannot stand in an option"));
  return path;
}

uint64_t RealtimeNow() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000ull + static_cast<uint64_t>(now.tv_nsec);
}

void SayWhyNoProfile(const std::string& program, const std::string& interval, const std::string& reason) {
  if (!reason.empty()) return Say(absl::StrCat("no profile: ", reason));
  absl::StatusOr<ExecutableFacts> facts = InspectExecutable(program);
  std::string why = facts.ok() ? WhyNotPreloaded(*facts) : "";
  if (!why.empty()) return Say(absl::StrCat("no profile: ", why));
  absl::StatusOr<uint64_t> bytes = ParseSize(interval);
  if (bytes.ok() && *bytes == 1) return Say("no profile: the program allocated nothing that was seen");
  Say(absl::StrCat("no sample was due (the program allocated less than about ",
                   FormatInterval(bytes.ok() ? *bytes : 512 * 1024), "); --interval 1 records every allocation"));
}

// Puts the profile where the user wants it. Returns its final path; empty = it is gone.
std::string KeepProfile(const RunCommand& command, const LiveFileWatch& watch) {
  if (command.output.empty()) return watch.path();
  CopyOptions options;
  options.is_snapshot = false;
  options.overwrite = true;
  if (absl::Status status = CopyProfile(watch.file(), watch.path(), command.output, options); !status.ok()) {
    Say(absl::StrCat(status.message(), "; the profile is still at ", watch.path()));
    return watch.path();
  }
  unlink(watch.path().c_str());
  Say(absl::StrCat("profile at ", command.output));
  return command.output;
}

void PrintEndReport(const RunCommand& command, const std::string& path) {
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(path, command.rules);
  if (!loaded.ok()) {
    Fail(loaded.status());
    return;
  }
  LoadedProfile& input = **loaded;
  ReportOptions options;
  options.profile_argument = path;
  options.metric = Metric::kPeak;
  Report report = BuildReport(input.profile, input.rules, input.attribution.get(), input.symbolizer.get(), options);
  TextOptions text;
  text.style = StyleForDescriptor(STDERR_FILENO);
  text.top = 8;
  text.brief = true;
  fputs(FormatText(report, text).c_str(), stderr);
  Say(absl::StrCat("more: cadastre report ", path));
}

int Run(const RunCommand& command, const Invocation& invocation) {
  const std::vector<std::string>& target = invocation.target;
  if (target.empty()) return Fail("no program to run: cadastre run [options] -- CMD...");
  absl::StatusOr<std::string> options = OptionsText(command);
  if (!options.ok()) return Fail(options.status());
  if (!command.rules.empty()) {
    absl::StatusOr<OwnerRules> rules = FindOwnerRules(command.rules);
    if (!rules.ok()) return Fail(rules.status());
  }
  if (!command.output.empty()) {
    // Made and dropped: better to hear now than after a day that it cannot be written.
    absl::StatusOr<OutputFile> probe = OutputFile::Create(command.output);
    if (!probe.ok()) return Fail(probe.status());
  }
  absl::StatusOr<Preload> preload = Preload::Find();
  if (!preload.ok()) return Fail(preload.status());
  absl::StatusOr<std::string> directory = LiveDirectory(*options);
  if (!directory.ok()) return Fail(directory.status());

  // The name holds the pid, so both sides of the fork work it out, from the same time.
  auto name_for = [&, now = static_cast<int64_t>(time(nullptr))](pid_t pid) {
    return LiveFileName(target[0], pid, now);
  };
  std::optional<LiveFileWatch> watch;
  ChildProcess child(invocation.inherited_sigpipe);
  absl::Status started = child.Start(
      target,
      [&](pid_t pid) {
        std::string ours = absl::StrCat(*options, options->empty() ? "" : ",", "out=", *directory,
                                        ",name=", name_for(pid), ",for=", pid);
        preload->SetEnvironment(ours);
      },
      [&](pid_t pid) { watch.emplace(*directory, name_for(pid)); });
  if (!started.ok()) {
    Fail(started);
    return child.start_failure();
  }
  std::string told = absl::StrCat(*directory, "/", name_for(child.pid()));
  Say(absl::StrCat("recording to ", told));
  auto look = [&] {
    // After an exec the profile goes on in another file.
    if (!watch->Poll() || watch->path() == told) return;
    told = watch->path();
    Say(absl::StrCat("recording to ", told));
  };
  child.Wait(look, watch->descriptor());
  look();
  int status = child.ExitStatus();
  const char* inherited = getenv("CADASTRE_OPTIONS");
  std::string interval = OptionValue(*options, "interval");
  if (interval.empty() && inherited != nullptr) interval = OptionValue(inherited, "interval");
  std::string reason = watch->TakeReason();
  if (!watch->found() || watch->was_removed()) {
    if (!command.quiet) SayWhyNoProfile(target[0], interval, reason);
    return status;
  }
  for (const std::string& earlier : watch->earlier()) WriteReplaced(earlier);
  if (reason.empty()) {
    ProcessOutcome outcome;
    outcome.wait_status = child.wait_status();
    outcome.end_realtime_ns = RealtimeNow();
    outcome.peak_rss_bytes = static_cast<uint64_t>(child.usage().ru_maxrss) * 1024;
    if (absl::Status written = WriteOutcome(watch->file(), outcome); !written.ok()) Fail(written);
  } else {
    // The file that there is belongs to what ran before the last exec.
    WriteReplaced(watch->path());
    Say(absl::StrCat("no profile from the exec on: ", reason));
  }
  std::string path = KeepProfile(command, *watch);
  if (!command.quiet) PrintEndReport(command, path);
  return status;
}

}  // namespace

void AddRunCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<RunCommand>();
  CLI::App* command = app.add_subcommand("run", "runs a program with its native allocations recorded");
  for (const TargetOption& option : kTargetOptions) {
    std::string name = option.name;
    command->add_option_function<std::string>(
        "--" + name, [=](const std::string& value) { options->options[name] = value; }, option.help);
  }
  command->add_option("--label", options->labels, "K:V, kept in the profile; may be repeated")->take_all();
  command->add_option("-o,--output", options->output, "put the final profile there");
  command->add_option("--rules", options->rules, "owner rules for the report at the end");
  command->add_flag("--quiet", options->quiet, "no report at the end");
  command->footer(
      "Usage: cadastre run [OPTIONS] -- CMD...\nEnds as CMD ends, or with 128+N if signal N killed it.\nExample: "
      "cadastre run --interval 64k -o pay.cad -- java -jar app.jar");
  command->callback([=] { invocation->status = Run(*options, *invocation); });
}

}  // namespace cadastre
