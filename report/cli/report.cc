// `cadastre report`: the owner table.
#include <unistd.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/cli/since.h"
#include "report/format.h"
#include "report/ledger.h"
#include "report/ledger_source.h"

namespace cadastre {
namespace {

constexpr GroupBy kGroups[] = {GroupBy::kModule, GroupBy::kTeam,   GroupBy::kLibrary,
                               GroupBy::kSite,   GroupBy::kThread, GroupBy::kHolder};
constexpr Metric kMetrics[] = {Metric::kLive, Metric::kAllocated, Metric::kCount, Metric::kPeak, Metric::kMapped};

template <typename Values, typename NameOf>
std::vector<std::string> NamesOf(const Values& values, NameOf name_of) {
  std::vector<std::string> names;
  for (auto value : values) names.push_back(name_of(value));
  return names;
}

struct ReportCommand {
  std::string profile, rules, older_than, since;
  SymbolizerOptions symbols = DefaultSymbols();
  std::string by = "module", metric = "live", format = "text";
  std::optional<size_t> top;
  uint64_t min_samples = kDefaultMinSamples;
  CLI::Option* metric_option = nullptr;
};

int PrintReport(const ReportCommand& command) {
  ReportOptions options;
  for (GroupBy by : kGroups) {
    if (command.by == GroupName(by)) options.by = by;
  }
  for (Metric metric : kMetrics) {
    if (command.metric == MetricName(metric)) options.metric = metric;
  }
  options.min_samples = command.min_samples;
  options.profile_argument = command.profile;
  if (!command.older_than.empty()) {
    options.older_than_s = ParseDurationSeconds(command.older_than);
    if (!options.older_than_s.has_value())
      return Fail(absl::StrCat("--older-than ", command.older_than, ": write 90s, 10m, 2h or 1d"));
  }
  absl::StatusOr<std::unique_ptr<LoadedProfile>> loaded = LoadProfile(command.profile, command.rules, command.symbols);
  if (!loaded.ok()) return Fail(loaded.status());
  LoadedProfile& input = **loaded;
  if (input.where.at_peak && command.metric_option->count() == 0) options.metric = Metric::kPeak;
  Report report = BuildReport(input.profile, input.rules, input.attribution.get(), input.symbolizer.get(), options);
  input.symbolizer->StoreNames();  // earlier snapshots have most of their frames in common with this one
  if (options.metric == Metric::kLive || options.metric == Metric::kMapped) {
    // Few samples are a low level; losses and damage would look like growth.
    const GrowthInput past{.rules = command.rules,
                           .symbols = command.symbols,
                           .metric = options.metric,
                           .min_samples = 0,
                           .refuse_unusable = true};
    if (absl::Status status = AddSince(input, command.since, past, &report); !status.ok()) return Fail(status);
  } else if (!command.since.empty() && command.since != "none") {
    return Fail(absl::StrCat("--since: growth is known of live and mapped memory, not of --metric ",
                             MetricName(options.metric)));
  }
  // Of a snapshot, and of a process that still runs.
  if (absl::StatusOr<ProcessMemory> memory = MemoryForProfile(input.profile, input.where.pid, {.nmt = NmtWanted::kNo});
      memory.ok()) {
    report.rss = BuildLedger(*memory, {&input.profile, input.attribution.get()});
  }
  if (command.format == "json") return PrintPieces([&](TextSink sink) { WriteJson(report, command.top, sink); });
  if (command.format == "csv") return PrintPieces([&](TextSink sink) { WriteCsv(report, command.top, sink); });
  if (command.format == "markdown") return Print(FormatMarkdown(report, command.top));
  TextOptions text;
  text.style = StyleForDescriptor(STDOUT_FILENO);
  text.top = command.top.value_or(10);
  return Print(FormatText(report, text));
}

}  // namespace

void AddReportCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<ReportCommand>();
  CLI::App* command = app.add_subcommand("report", "owner tables: who owns the native memory");
  command->add_option("P", options->profile, "profile, PID, or one with @LABEL")->required();
  command
      ->add_option("--by", options->by,
                   "module (default), team, library, site, thread or holder (who has it, not who created it)")
      ->check(OneOf(NamesOf(kGroups, GroupName)));
  options->metric_option =
      command->add_option("--metric", options->metric, "live (default), allocated, count, peak or mapped")
          ->check(OneOf(NamesOf(kMetrics, MetricName)));
  command->add_option("--older-than", options->older_than, "rank by live memory older than this: 10m, 2h");
  command->add_option("--since", options->since,
                      "label of the snapshot to count growth from (default: the oldest beside P), or none");
  AddRulesOption(command, &options->rules);
  command->add_option("--top", options->top, "rows to print; JSON: sites (default: 10; JSON and CSV: all)")
      ->check(WholeNumber(0));
  command->add_option("--format", options->format, "text (default), json, csv or markdown")
      ->check(OneOf({"text", "json", "csv", "markdown"}));
  AddMinSamplesOption(command, &options->min_samples);
  AddSymbolOptions(command, &options->symbols);
  command->footer("Example: cadastre report pay.cad --by site --metric allocated --top 5");
  command->callback([=] { invocation->status = PrintReport(*options); });
}

}  // namespace cadastre
