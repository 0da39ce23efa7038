// `cadastre run`: starts a program with the interposer in front of it, keeps its profile, says at the end who owned the
// memory.
//
// The program's stdout, stderr and exit status stay its own; everything of ours goes to stderr.
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "interposer/options.h"
#include "report/cli/child_process.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/cli/live_file_watch.h"
#include "report/cli/run_watch.h"
#include "report/clock.h"
#include "report/executable_facts.h"
#include "report/format.h"
#include "report/function_name.h"
#include "report/live_file.h"
#include "report/output_file.h"
#include "report/preload.h"
#include "report/profile_copy.h"
#include "report/saved_profiles.h"

namespace cadastre {
namespace {

struct RunCommand {
  std::map<std::string, std::string> options;  // those of CADASTRE_OPTIONS that have one value
  std::vector<std::string> labels;
  std::string output, rules;
  std::string every, at, limit;
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

// Where live files go: the flag, else the environment's option, else the default.
struct LivePlace {
  std::string out;          // for the program: absolute, for it may change its directory; patterns as they are
  std::string directory;    // is there; patterns begin below it
  bool is_pattern = false;  // has %p and the like, or a file's name
};
absl::StatusOr<LivePlace> FindLivePlace(const std::string& options) {
  LivePlace place;
  const char* inherited = getenv("CADASTRE_OPTIONS");
  place.out = OptionValue(options, "out");
  if (place.out.empty() && inherited != nullptr) place.out = OptionValue(inherited, "out");
  if (place.out.empty()) place.out = DefaultLiveDirectory();
  std::string rest;
  place.directory = LiveDirectoryOf(place.out, &rest);
  place.is_pattern = !rest.empty();
  struct stat status;
  if (stat(place.directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return absl::NotFoundError(absl::StrCat("cannot record to ", place.directory, ": not a directory"));
  }
  if (access(place.directory.c_str(), W_OK | X_OK) != 0)
    return absl::PermissionDeniedError(absl::StrCat("cannot record to ", place.directory, ": permission denied"));
  // Made and dropped: /proc is a directory that says it can be written to.
  absl::StatusOr<OutputFile> probe = OutputFile::Create(absl::StrCat(place.directory, "/cadastre"));
  if (!probe.ok())
    return absl::FailedPreconditionError(
        absl::StrCat("cannot record to ", place.directory, ": no file can be made there"));
  char* absolute = realpath(place.directory.c_str(), nullptr);
  if (absolute != nullptr) place.directory = absolute;
  free(absolute);
  place.out = rest.empty() ? place.directory : absl::StrCat(place.directory == "/" ? "" : place.directory, "/", rest);
  if (place.out.find(',') != std::string::npos)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot record to ", place.out, ": a comma cannot stand in an option"));
  return place;
}

// The live file of the program that we start, as it is told.
absl::StatusOr<std::string> LivePathFor(const LivePlace& place, const std::string& program, pid_t pid, int64_t now) {
  if (!place.is_pattern) return absl::StrCat(place.directory, "/", LiveFileName(program, pid, now));
  utsname names{};
  uname(&names);
  const std::string exe(FileName(program));
  char expanded[PATH_MAX], directory[PATH_MAX], name[256];
  const char* first = nullptr;
  if (!ExpandOutput(place.out.c_str(),
                    {exe.c_str(), names.nodename, static_cast<uint64_t>(pid), static_cast<uint64_t>(now)}, expanded,
                    sizeof(expanded), &first))
    return absl::InvalidArgumentError(absl::StrCat("--out ", place.out, ": too long, or a pattern that is none"));
  SplitOutput(expanded, directory, sizeof(directory), name, sizeof(name));
  const std::string path = absl::StrCat(directory, "/", name[0] != '\0' ? name : LiveFileName(program, pid, now));
  if (path.size() >= kOptionTextBytes)
    return absl::InvalidArgumentError(
        absl::StrCat("--out: ", path, " is longer than ", kOptionTextBytes - 1, " bytes"));
  return path;
}

// The program would make them too, but then we could not watch for its file.
void MakePrivateDirectories(const std::string& directory) {
  const mode_t before = umask(077);
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  umask(before);
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

// Puts the profile where the user wants it. Returns its final path; empty = it is gone.
std::string KeepProfile(const RunCommand& command, const LiveFileWatch& watch) {
  CopyOptions options;
  options.is_snapshot = false;
  options.overwrite = true;
  if (command.output.empty()) {
    // In its place: as long as what is in it. Where there is no room for that, it stays as it is.
    (void)CopyProfile(watch.file(), watch.path(), watch.path(), options);
    return watch.path();
  }
  if (absl::Status status = CopyProfile(watch.file(), watch.path(), command.output, options); !status.ok()) {
    Say(absl::StrCat(status.message(), "; the profile is still at ", watch.path()));
    return watch.path();
  }
  unlink(watch.path().c_str());
  MoveSnapshots(watch.path(), command.output, [](const std::string& line) { Say(line); });
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

void SayNotRecorded(const RunCommand& command, const std::string& text) {
  if (!command.quiet && !text.empty()) Say(text);
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
  absl::StatusOr<LivePlace> place = FindLivePlace(*options);
  if (!place.ok()) return Fail(place.status());
  const auto now = static_cast<int64_t>(time(nullptr));
  // Better to hear now that a name is too long.
  if (absl::StatusOr<std::string> path = LivePathFor(*place, target[0], getpid(), now); !path.ok())
    return Fail(path.status());
  const std::string keep = EffectiveOption(*options, "keep");
  absl::StatusOr<WatchSettings> settings =
      ParseWatchSettings(command.every, command.every.empty() || keep == "0" ? "" : keep,
                         command.at.empty() && !command.limit.empty() ? "66,75,90" : command.at, command.limit);
  if (!settings.ok()) return Fail(settings.status());
  RunWatchOptions watch_options{*settings, UINT32_MAX, place->directory, command.output};
  if (!keep.empty()) (void)absl::SimpleAtoi(keep, &watch_options.keep);
  RunWatch beside(watch_options, [](const std::string& line) { Say(line); });
  beside.AdoptEarlier();

  // The name holds the pid, so both sides of the fork work it out, from the same time.
  auto path_for = [&](pid_t pid) {
    absl::StatusOr<std::string> path = LivePathFor(*place, target[0], pid, now);
    return path.ok() ? *path : absl::StrCat(place->directory, "/", LiveFileName(target[0], pid, now));
  };
  std::optional<LiveFileWatch> watch;
  std::string directory = place->directory;
  const uint64_t started_ns = RealtimeNow();
  ChildProcess child({invocation.inherited_sigpipe, invocation.inherited_sigxfsz});
  absl::Status started = child.Start(
      target,
      [&](pid_t pid) {
        const std::string path = path_for(pid);
        std::string ours = absl::StrCat(
            *options, options->empty() ? "" : ",", "out=", place->out,
            ",name=", place->is_pattern ? absl::StrReplaceAll(path, {{"%", "%%"}}) : std::string(FileName(path)),
            ",for=", pid);
        preload->SetEnvironment(ours);
      },
      [&](pid_t pid) {
        const std::string path = path_for(pid);
        directory = path.substr(0, path.rfind('/'));
        if (place->is_pattern) MakePrivateDirectories(directory);
        watch.emplace(directory, std::string(FileName(path)));
      });
  if (!started.ok()) {
    Fail(started);
    return child.start_failure();
  }
  // Said when the file is there: the program may not be one that is recorded. After an exec it is another file.
  auto look = [&] {
    if (watch->Poll()) Say(absl::StrCat("recording to ", watch->path()));
    beside.Turn(*watch);
  };
  beside.Begin(child.pid(), directory);
  child.Wait(look, watch->descriptor(), [&](pid_t orphan) { beside.NoteEnding(orphan); });
  if (watch->Poll()) Say(absl::StrCat("recording to ", watch->path()));
  const format::MemoryNote memory = beside.End();
  int status = child.ExitStatus();
  std::string reason = watch->TakeReason();
  if (!watch->found() || watch->was_removed()) {
    double ran_seconds = static_cast<double>(RealtimeNow() - started_ns) / 1e9;
    if (!command.quiet)
      SayWhyNoProfile(target[0], *options, reason, WIFEXITED(child.wait_status()), ran_seconds, watch->found(),
                      ProfilesMadeSince(directory, started_ns));
    SayNotRecorded(command, beside.NotRecorded(true));
    return status;
  }
  for (const std::string& earlier : watch->earlier()) {
    WriteReplaced(earlier);
    (void)SaveDeadProfile(earlier, "", {});
  }
  if (reason.empty()) {
    ProcessOutcome outcome;
    outcome.wait_status = child.wait_status();
    outcome.end_realtime_ns = RealtimeNow();
    outcome.peak_rss_bytes = static_cast<uint64_t>(child.usage().ru_maxrss) * 1024;
    if (memory.realtime_ns != 0) WriteMemoryNote(watch->file(), memory);
    if (absl::Status written = WriteOutcome(watch->file(), outcome); !written.ok()) Fail(written);
  } else {
    // The file that there is belongs to what ran before the last exec.
    WriteReplaced(watch->path());
    Say(absl::StrCat("no profile from the exec on: ", reason));
  }
  std::string path = KeepProfile(command, *watch);
  if (!command.quiet) PrintEndReport(command, path);
  SayNotRecorded(command, beside.NotRecorded(false));
  if (watch_options.keep != UINT32_MAX) RemoveSavedBeyond(directory, watch_options.keep);
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
  command->add_option("--every", options->every, "a snapshot each so often, as in 10m; --keep N of them (default 144)");
  command->add_option("--at", options->at,
                      "a snapshot when memory reaches these percentages of its limit, as in 75,90");
  command->add_option("--limit", options->limit, "RSS that counts as 100 % (default: the cgroup's memory limit)");
  command->add_option("--rules", options->rules, "owner rules for the report at the end");
  command->add_flag("--quiet", options->quiet, "no report at the end");
  command->footer(
      "Usage: cadastre run [OPTIONS] [--] CMD...\nWhat follows CMD is its own. Ends as CMD ends, or with 128+N if "
      "signal N killed it.\nExample: "
      "cadastre run --interval 64k -o pay.cad -- java -jar app.jar");
  command->callback([=] { invocation->status = Run(*options, *invocation); });
}

}  // namespace cadastre
