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
#include "report/live_place.h"
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

// The value that the program went by: the flag's, else the environment's.
std::string EffectiveOption(const std::string& options, const std::string& name) {
  const char* inherited = getenv("CADASTRE_OPTIONS");
  std::string value = OptionValue(options, name);
  return value.empty() && inherited != nullptr ? OptionValue(inherited, name) : value;
}

// Where live files go: the flag, else the environment's option, else the default.
absl::StatusOr<LivePlace> FindLivePlace(const std::string& options) {
  const std::string out = EffectiveOption(options, "out");
  if (!out.empty()) return LivePlace::Find(out);
  absl::StatusOr<LivePlace> place = LivePlace::Find(DefaultLiveDirectory());
  if (place.ok()) return place;
  return absl::Status(place.status().code(),
                      absl::StrCat(place.status().message(), " (--out DIR names another directory for live files)"));
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
  const std::string typed(FileName(program));
  if (!exe.empty() && !name.empty() && !GlobMatches(exe.c_str(), name.c_str()) &&
      !(facts->scripts.empty() && GlobMatches(exe.c_str(), typed.c_str()))) {
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
  options.effort = Effort::kThorough;
  options.overwrite = true;
  if (command.output.empty()) {
    // In its place: as long as what is in it. Where there is no room for that, it stays as it is.
    (void)CopyProfile(watch.file(), watch.path(), watch.path(), options);
    PackPeakOf(watch.path());
    return watch.path();
  }
  if (absl::Status status = CopyProfile(watch.file(), watch.path(), command.output, options); !status.ok()) {
    Say(absl::StrCat(status.message(), "; the profile is still at ", watch.path()));
    return watch.path();
  }
  unlink(watch.path().c_str());
  MoveSnapshots(watch.path(), command.output, [](const std::string& line) { Say(line); });
  PackPeakOf(command.output);
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

int RunUnrecorded(const Invocation& invocation) {
  ChildProcess child({invocation.inherited_sigpipe, invocation.inherited_sigxfsz});
  absl::Status started = child.Start(
      invocation.target, [](pid_t) {}, [](pid_t) {});
  if (started.ok()) {
    child.Wait([] {}, -1);
    started = child.start_error();
  }
  if (!started.ok()) Fail(started);
  return child.ExitStatus();
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
    struct stat existing {};
    ProfileIdentity identity;
    if (lstat(command.output.c_str(), &existing) == 0 && S_ISREG(existing.st_mode) && existing.st_size > 0 &&
        !IdentityOf(command.output, &identity))
      return Fail(absl::StrCat("-o ", command.output, ": is there and is no profile; it is left as it is"));
    // Made and dropped: better to hear now than after a day that it cannot be written.
    absl::StatusOr<OutputFile> probe = OutputFile::Create(command.output);
    if (!probe.ok()) return Fail(probe.status());
  }
  absl::StatusOr<Preload> preload = Preload::Find();
  if (!preload.ok()) return Fail(preload.status());
  absl::StatusOr<LivePlace> place = FindLivePlace(*options);
  // A flag is a mistake to be told of now. A container without a place to write to is not the program's fault.
  if (!place.ok() && command.options.contains("out")) return Fail(place.status());
  const std::string keep = EffectiveOption(*options, "keep");
  absl::StatusOr<WatchSettings> settings =
      ParseWatchSettings(command.every, command.every.empty() || keep == "0" ? "" : keep,
                         command.at.empty() && !command.limit.empty() ? "66,75,90" : command.at, command.limit);
  if (!settings.ok()) return Fail(settings.status());
  if (!place.ok()) {
    Say(absl::StrCat(place.status().message(), "; the program runs without being recorded"));
    return RunUnrecorded(invocation);
  }
  absl::StatusOr<ExecutableFacts> facts = InspectExecutable(target[0]);
  const char* asan_options = getenv("ASAN_OPTIONS");
  const bool is_allowed = asan_options != nullptr && absl::StrContains(asan_options, "verify_asan_link_order=0");
  if (facts.ok() && facts->sanitizer_refuses_preload && !is_allowed) {
    Say(absl::StrCat(WhyNotPreloaded(*facts), "; the program runs without being recorded"));
    return RunUnrecorded(invocation);
  }
  RunWatchOptions watch_options{*settings, UINT32_MAX, *place, command.output};
  if (!keep.empty()) (void)absl::SimpleAtoi(keep, &watch_options.keep);
  RunWatch beside(watch_options, [](const std::string& line) { Say(line); });
  beside.AdoptEarlier();

  std::optional<LiveFileWatch> watch;
  const uint64_t started_ns = RealtimeNow();
  ChildProcess child({invocation.inherited_sigpipe, invocation.inherited_sigxfsz});
  absl::Status started = child.Start(
      target,
      [&](pid_t pid) {
        preload->SetEnvironment(
            absl::StrCat(*options, options->empty() ? "" : ",", "out=", place->out(), ",for=", pid));
      },
      [&](pid_t pid) { watch.emplace(*place, pid); });
  if (!started.ok()) {
    Fail(started);
    return child.ExitStatus();
  }
  // Said when the file is there: the program may not be one that is recorded. After an exec it is another file.
  auto look = [&] {
    if (watch->Poll()) Say(absl::StrCat("recording to ", watch->path()));
    beside.Turn(*watch);
  };
  beside.Begin(child.pid());
  child.Wait(look, watch->descriptor(), [&](pid_t orphan) { beside.NoteEnding(orphan); });
  if (watch->Poll()) Say(absl::StrCat("recording to ", watch->path()));
  const format::MemoryNote memory = beside.End();
  int status = child.ExitStatus();
  if (!child.start_error().ok()) {
    Fail(child.start_error());
    return status;
  }
  std::string reason = watch->TakeReason();
  if (!watch->found() || watch->was_removed()) {
    double ran_seconds = static_cast<double>(RealtimeNow() - started_ns) / 1e9;
    if (!command.quiet)
      SayWhyNoProfile(target[0], *options, reason, WIFEXITED(child.wait_status()), ran_seconds, watch->found(),
                      ProfilesMadeSince(place->directory(), started_ns));
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
    outcome.peak_rss_bytes = beside.OwnPeakBytes(static_cast<uint64_t>(child.usage().ru_maxrss) * 1024);
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
  if (watch_options.keep != UINT32_MAX) {
    for (const std::string& directory : place->DirectoriesOf(0)) RemoveSavedBeyond(directory, watch_options.keep);
  }
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
