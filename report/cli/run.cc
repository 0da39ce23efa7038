// `cadastre run`: starts a program with the interposer in front of it, keeps its profile, says at the end who owned the
// memory.
//
// The program's stdout, stderr and exit status stay its own; everything of ours goes to stderr.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "interposer/options.h"
#include "report/cli/child_process.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/cli/live_file_watch.h"
#include "report/executable_facts.h"
#include "report/format.h"
#include "report/function_name.h"
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

void Say(absl::string_view line) { fprintf(stderr, "cadastre: %s\n", SafeText(line).c_str()); }

// "interval=64k,out=DIR,label=K:V"; an error for what the program would not understand.
absl::StatusOr<std::string> OptionsText(const RunCommand& command) {
  std::string text, labels;
  auto add = [&](const std::string& name, const std::string& value) -> absl::Status {
    if (absl::Status status = CheckTargetOption(name, value); !status.ok()) return status;
    absl::StrAppend(&text, text.empty() ? "" : ",", name, "=", value);
    return absl::OkStatus();
  };
  for (const auto& [name, value] : command.options) {
    if (absl::Status status = add(name, value); !status.ok()) return status;
  }
  for (const std::string& label : command.labels) {
    if (absl::Status status = add("label", label); !status.ok()) return status;
    absl::StrAppend(&labels, labels.empty() ? "" : "\n", label);
  }
  if (labels.size() >= kOptionTextBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("--label: all of them have ", labels.size(), " bytes together; at most ", kOptionTextBytes - 1));
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
  // Made and dropped: /proc is a directory that says it can be written to.
  absl::StatusOr<OutputFile> probe = OutputFile::Create(absl::StrCat(directory, "/cadastre"));
  if (!probe.ok())
    return absl::FailedPreconditionError(absl::StrCat("cannot record to ", directory, ": no file can be made there"));
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

// The value that the program went by: the flag's, else the environment's.
std::string EffectiveOption(const std::string& options, const std::string& name) {
  const char* inherited = getenv("CADASTRE_OPTIONS");
  std::string value = OptionValue(options, name);
  return value.empty() && inherited != nullptr ? OptionValue(inherited, name) : value;
}

// Those of programs that the child started, most likely.
size_t ProfilesMadeSince(const std::string& directory, uint64_t realtime_ns) {
  size_t made = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    struct stat facts {};
    std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, "cadastre-") || !absl::EndsWith(name, ".cad")) continue;
    if (lstat(entry.path().c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    uint64_t changed_ns =
        static_cast<uint64_t>(facts.st_ctim.tv_sec) * 1000000000ull + static_cast<uint64_t>(facts.st_ctim.tv_nsec);
    made += changed_ns >= realtime_ns;
  }
  return made;
}

void SayWhyNoProfile(const std::string& program, const std::string& options, const std::string& reason, bool clean_exit,
                     double ran_seconds, bool was_made, size_t others) {
  std::string min_life = EffectiveOption(options, "min-life"), exe = EffectiveOption(options, "exe");
  uint64_t min_life_ns = 0;
  if (clean_exit && ParseDuration(min_life.data(), min_life.size(), &min_life_ns) &&
      ran_seconds < static_cast<double>(min_life_ns) / 1e9) {
    return Say(absl::StrCat("no profile: the program ended after ", FormatDuration(ran_seconds),
                            ", sooner than min-life=", min_life));
  }
  if (!reason.empty()) return Say(absl::StrCat("no profile: ", reason));
  if (was_made) return Say("no profile: its file was removed while the program ran");
  absl::StatusOr<ExecutableFacts> facts = InspectExecutable(program);
  std::string name = facts.ok() ? std::string(FileName(facts->path)) : "";
  if (name == "cadastre")
    return Say("no profile of cadastre itself: it is never recorded; what it runs is, on its own");
  if (!exe.empty() && !name.empty() && !GlobMatches(exe.c_str(), name.c_str())) {
    return Say(absl::StrCat("no profile of ", name, ": exe=", exe,
                            " leaves it out; `cadastre list` shows those of programs that it started"));
  }
  std::string why = facts.ok() ? WhyNotPreloaded(*facts) : "";
  if (!why.empty()) return Say(absl::StrCat("no profile: ", why));
  absl::StatusOr<uint64_t> bytes = ParseSize(EffectiveOption(options, "interval"));
  if (others > 0) {
    return Say(
        absl::StrCat("no profile of ", name.empty() ? program : name, " itself, which allocated too little; ",
                     others == 1 ? "one of another program was" : absl::StrCat(others, " of other programs were"),
                     " made meanwhile (its children's are such): see `cadastre list`"));
  }
  if (bytes.ok() && *bytes == 1) return Say("no profile: the program allocated nothing that was seen");
  Say(absl::StrCat("no sample was due (the program allocated less than about ",
                   FormatInterval(bytes.ok() ? *bytes : kDefaultIntervalBytes),
                   "); --interval 1 records every allocation"));
}

// Snapshots follow their profile: FILE@LABEL.
void MoveSnapshots(const std::string& from, const std::string& to) {
  for (const std::string& snapshot : SnapshotsOf(from)) {
    CopyOptions options;
    options.is_snapshot = false;  // it is one already
    options.overwrite = true;
    std::string moved = absl::StrCat(to, snapshot.substr(from.size()));
    if (absl::Status status = CopyProfile(snapshot, moved, options); !status.ok()) {
      Say(absl::StrCat(status.message(), "; the snapshot is still at ", snapshot));
      continue;
    }
    unlink(snapshot.c_str());
  }
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
  MoveSnapshots(watch.path(), command.output);
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
  const uint64_t started_ns = RealtimeNow();
  ChildProcess child({invocation.inherited_sigpipe, invocation.inherited_sigxfsz});
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
  // Said when the file is there: the program may not be one that is recorded. After an exec it is another file.
  auto look = [&] {
    if (watch->Poll()) Say(absl::StrCat("recording to ", watch->path()));
  };
  child.Wait(look, watch->descriptor());
  look();
  int status = child.ExitStatus();
  std::string reason = watch->TakeReason();
  if (!watch->found() || watch->was_removed()) {
    double ran_seconds = static_cast<double>(RealtimeNow() - started_ns) / 1e9;
    if (!command.quiet)
      SayWhyNoProfile(target[0], *options, reason, WIFEXITED(child.wait_status()), ran_seconds, watch->found(),
                      ProfilesMadeSince(*directory, started_ns));
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
  size_t count;
  const Knob* knobs = Knobs(&count);
  for (size_t i = 0; i < count; i++) {
    std::string name = knobs[i].name;
    if (knobs[i].help == nullptr) continue;
    if (name == "label") {
      command->add_option("--label", options->labels, knobs[i].help)->take_all();
      continue;
    }
    command->add_option_function<std::string>(
        "--" + name, [=](const std::string& value) { options->options[name] = value; }, knobs[i].help);
  }
  command->add_option("-o,--output", options->output, "put the final profile there");
  command->add_option("--rules", options->rules, "owner rules for the report at the end");
  command->add_flag("--quiet", options->quiet, "no report at the end");
  command->footer(
      "Usage: cadastre run [OPTIONS] [--] CMD...\nWhat follows CMD is its own. Ends as CMD ends, or with 128+N if "
      "signal N killed it.\nExample: "
      "cadastre run --interval 64k -o pay.cad -- java -jar app.jar");
  command->callback([=] { invocation->status = Run(*options, *invocation); });
}

}  // namespace cadastre
