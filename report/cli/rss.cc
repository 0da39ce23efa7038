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
  bool areas = false;
};

int PrintLedger(const RssCommand& command) {
  std::unique_ptr<LoadedProfile> loaded;
  absl::StatusOr<std::unique_ptr<LoadedProfile>> profile = LoadProfile(command.process, command.rules, command.symbols);
  const pid_t typed = TypedPid(command.process);
  if (profile.ok()) {
    loaded = *std::move(profile);
  } else if (typed == 0 || !ProcessExists(typed) || FindProfile(command.process).ok()) {
    return Fail(profile.status());  // it is recorded: what is wrong is to be told
  }
  std::string smaps, nmt_problem;
  CollectOptions collect;
  collect.smaps_text = &smaps;
  collect.nmt_problem = &nmt_problem;
  if (command.nmt == "summary") collect.nmt = NmtWanted::kSummary;
  if (command.nmt == "detail") collect.nmt = NmtWanted::kDetail;
  absl::StatusOr<ProcessMemory> memory = loaded != nullptr
                                             ? MemoryForProfile(loaded->profile, loaded->where.pid, collect)
                                             : CollectProcessMemory(typed, collect);
  if (!memory.ok()) return Fail(memory.status());
  if (!command.smaps.empty()) {
    if (smaps.empty()) return Fail("--smaps: a snapshot holds no text of smaps");
    if (absl::Status written = WriteOutputFile(command.smaps, smaps); !written.ok()) return Fail(written);
  }
  LedgerInputs inputs;
  if (loaded != nullptr) inputs = {&loaded->profile, loaded->attribution.get()};
  if (command.areas) return Print(FormatLedgerAreas(*memory, CutAreas(*memory, inputs.profile, inputs.attribution)));
  if (!command.nmt.empty()) {
    if (memory->nmt.empty()) {
      return Fail(absl::StrCat("no report of native memory tracking: ",
                               nmt_problem.empty() ? "the process is no JVM" : nmt_problem));
    }
    return Print(FormatNmtView(*memory, inputs, command.nmt == "detail"));
  }
  Ledger ledger = BuildLedger(*memory, inputs);
  if (!nmt_problem.empty()) ledger.warnings.push_back(absl::StrCat("native memory tracking: ", nmt_problem));
  if (loaded != nullptr && !loaded->where.note.empty()) ledger.warnings.push_back(loaded->where.note);
  if (loaded != nullptr && loaded->profile.losses.mappings_full > 0)
    ledger.warnings.push_back(absl::StrCat(FormatCount(static_cast<double>(loaded->profile.losses.mappings_full)),
                                           " mappings had no room in the profile: their rows do not know whose they "
                                           "are, and may be unexplained; memory= gives it more"));
  if (command.format == "json") return Print(FormatLedgerJson(ledger));
  if (command.format == "csv") return Print(FormatLedgerCsv(ledger));
  if (command.format == "markdown") return Print(FormatLedgerMarkdown(ledger));
  return Print(FormatLedgerText(ledger, StyleForDescriptor(STDOUT_FILENO), command.top));
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
  command->add_option("--smaps", options->smaps, "also write /proc/PID/smaps there, as it was read for this ledger");
  command->footer("Example: cadastre rss 4242\nExample: cadastre rss pay.cad@before --format csv");
  command->callback([=] { invocation->status = PrintLedger(*options); });
}

}  // namespace cadastre
