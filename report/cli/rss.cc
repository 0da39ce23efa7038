// `cadastre rss`: the ledger of a process's resident memory.
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/ledger.h"
#include "report/ledger_source.h"
#include "report/nmt_view.h"
#include "report/output_file.h"
#include "report/process_info.h"

namespace cadastre {
namespace {

struct RssCommand {
  std::string process, rules, smaps, nmt;
  SymbolizerOptions symbols = DefaultSymbols();
  std::string format = "text";
  size_t top = 10;
  bool areas = false, threads = false;
};

// Empty: they go together. Three views stand instead of the ledger, and have not all of its formats.
std::string ConflictOf(const RssCommand& command) {
  const int views = (command.areas ? 1 : 0) + (command.threads ? 1 : 0) + (command.nmt.empty() ? 0 : 1);
  if (views > 1) return "one of --areas, --threads and --nmt at a time";
  auto refuse = [&](const char* view, const char* kinds) {
    return absl::StrCat(view, " is ", kinds, ": not --format ", command.format);
  };
  if (!command.nmt.empty() && command.format != "text")
    return refuse("--nmt", "HotSpot's own text with a category more");
  if (command.areas && command.format != "text" && command.format != "csv") return refuse("--areas", "CSV");
  if (command.threads && command.format == "markdown") return refuse("--threads", "text, json or csv");
  return "";
}

// The process as it is now or was in a snapshot, and who owns what of it.
struct RssInputs {
  std::unique_ptr<LoadedProfile> loaded;  // nullptr: it was never recorded
  OwnerRules rules;                       // of such a process
  std::unique_ptr<FrameOwner> owners;
  ProcessMemory memory;
  std::string smaps, nmt_problem;
  std::string note;  // why it was not recorded, although it could have been

  LedgerInputs ForLedger() const {
    if (loaded == nullptr) return {.rules = owners.get()};
    return {.profile = &loaded->profile, .attribution = loaded->attribution.get()};
  }
};

absl::Status LoadInputs(const RssCommand& command, RssInputs* inputs) {
  const pid_t typed = TypedPid(command.process);
  auto load = [&] { return LoadProfile(command.process, command.rules, command.symbols); };
  absl::StatusOr<std::unique_ptr<LoadedProfile>> profile = load();
  // If it is recorded, what is wrong is to be told.
  const bool never_recorded = typed != 0 && ProcessExists(typed) && !FindProfile(command.process).ok();
  if (never_recorded && MapsFileNamed(typed, "libcadastre"))
    inputs->note = absl::StrCat("process ", typed, " ", WhyNoProfile(typed));
  if (!profile.ok() && !never_recorded) return profile.status();
  pid_t pid = typed;
  if (profile.ok())
    pid = (*profile)->profile.is_snapshot ? 0 : ProcessOfProfile((*profile)->profile, (*profile)->where.pid);
  CollectOptions collect;
  collect.smaps_text = &inputs->smaps;
  collect.nmt_problem = &inputs->nmt_problem;
  if (command.nmt == "summary") collect.nmt = NmtWanted::kSummary;
  if (command.nmt == "detail") collect.nmt = NmtWanted::kDetail;
  NmtAnswer nmt;
  if (pid != 0) {
    nmt = AskNmt(pid, collect.nmt, [&] {
      if (profile.ok()) profile = load();
    });
    collect.nmt_answer = &nmt;
    if (!profile.ok() && !never_recorded) return profile.status();
    if (profile.ok()) {
      const Profile& read = (*profile)->profile;
      collect.records_monotonic_ns = read.start_monotonic_ns + read.duration_ns;
    }
  }
  if (profile.ok()) {
    inputs->loaded = *std::move(profile);
  } else {
    absl::StatusOr<OwnerRules> rules = FindOwnerRules(command.rules);
    if (!rules.ok()) return rules.status();
    inputs->rules = *std::move(rules);
    inputs->owners = std::make_unique<FrameOwner>(inputs->rules);
  }
  absl::StatusOr<ProcessMemory> memory =
      inputs->loaded != nullptr ? MemoryForProfile(inputs->loaded->profile, inputs->loaded->where.pid, collect)
                                : CollectProcessMemory(typed, collect);
  if (!memory.ok()) return memory.status();
  inputs->memory = *std::move(memory);
  return absl::OkStatus();
}

int PrintLedger(const RssCommand& command) {
  if (std::string conflict = ConflictOf(command); !conflict.empty()) return Fail(conflict);
  RssInputs inputs;
  if (absl::Status status = LoadInputs(command, &inputs); !status.ok()) return Fail(status);
  if (!command.smaps.empty()) {
    if (inputs.smaps.empty()) return Fail("--smaps: a snapshot holds no text of smaps");
    if (absl::Status written = WriteOutputFile(command.smaps, inputs.smaps); !written.ok()) return Fail(written);
  }
  const LedgerInputs for_ledger = inputs.ForLedger();
  if (command.areas) return Print(FormatLedgerAreas(inputs.memory, CutAreas(inputs.memory, for_ledger)));
  if (!command.nmt.empty()) {
    if (inputs.memory.nmt.empty()) {
      return Fail(absl::StrCat("no report of native memory tracking: ",
                               inputs.nmt_problem.empty() ? "the process is no JVM" : inputs.nmt_problem));
    }
    return Print(FormatNmtView(inputs.memory, for_ledger, command.nmt == "detail"));
  }
  Ledger ledger = BuildLedger(inputs.memory, for_ledger);
  if (!inputs.nmt_problem.empty())
    ledger.warnings.push_back(absl::StrCat("native memory tracking: ", inputs.nmt_problem));
  if (!inputs.note.empty()) ledger.warnings.push_back(inputs.note);
  const LoadedProfile* loaded = inputs.loaded.get();
  if (loaded != nullptr && !loaded->where.note.empty()) ledger.warnings.push_back(loaded->where.note);
  if (loaded != nullptr && !loaded->profile.incomplete.empty())
    ledger.warnings.push_back(absl::StrCat(loaded->profile.incomplete, ": owners are missing, and what is live"));
  if (loaded != nullptr && loaded->profile.losses.mappings_full > 0)
    ledger.warnings.push_back(
        "the profile has no room for so many mappings: whose the others are is not known, and their rows have no "
        "owner; "
        "memory= gives it more");
  if (command.format == "json") return Print(FormatLedgerJson(ledger));  // threads are in it
  const TextStyle style = StyleForDescriptor(STDOUT_FILENO);
  if (command.threads)
    return Print(command.format == "csv" ? FormatThreadStacksCsv(ledger) : FormatThreadStacksText(ledger, style));
  if (command.format == "csv") return Print(FormatLedgerCsv(ledger));
  if (command.format == "markdown") return Print(FormatLedgerMarkdown(ledger));
  return Print(FormatLedgerText(ledger, style, command.top));
}

}  // namespace

void AddRssCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<RssCommand>();
  CLI::App* command = app.add_subcommand("rss", "the RSS ledger: rows that add up to Rss exactly");
  command->add_option("P", options->process, "PID (recorded or not), or a snapshot: P@LABEL")->required();
  AddRulesOption(command, &options->rules);
  AddSymbolOptions(command, &options->symbols);
  command->add_option("--top", options->top, "owners to print for each row (default 10; the other formats: all)")
      ->check(WholeNumber(0));
  command->add_option("--format", options->format, "text (default), json, csv or markdown")
      ->check(OneOf({"text", "json", "csv", "markdown"}));
  command
      ->add_option("--nmt", options->nmt,
                   "instead: HotSpot's report of native memory tracking, summary or detail, with what it cannot see "
                   "as the category External")
      ->check(OneOf({"summary", "detail"}));
  command->add_flag("--areas", options->areas, "instead: each mapping and its row, as CSV");
  command->add_flag("--threads", options->threads,
                    "instead: the stack of each thread, what of it is resident, and who created the thread, as text or "
                    "CSV (in the ledger's JSON they always are)");
  command->add_option("--smaps", options->smaps, "also write /proc/PID/smaps there, as it was read for this ledger");
  command->footer(
      "Example: cadastre rss 4242\nExample: cadastre rss 4242 --threads\nExample: cadastre rss pay.cad@before --format "
      "csv");
  command->callback([=] { invocation->status = PrintLedger(*options); });
}

}  // namespace cadastre
