// What the commands of `cadastre` share: how each is registered, how it fails, how it loads what it reports on.
//
// Exit status of every command: 0 done (or: the gate passed), 1 a gate failed or a check found a fault, 2 usage, input,
// or an unusable profile. Errors are one line on stderr, "cadastre: ...". Thread-safety: main thread only.
//
// Example (a command's file):
//   void AddListCommand(CLI::App& app, Invocation* invocation) {
//     auto options = std::make_shared<ListOptions>();
//     CLI::App* command = app.add_subcommand("list", "profiles and their snapshots");
//     command->callback([=] { invocation->status = List(*options); });
//   }
#ifndef CADASTRE_REPORT_CLI_COMMAND_H_
#define CADASTRE_REPORT_CLI_COMMAND_H_

#include <signal.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "report/attribution.h"
#include "report/json_writer.h"
#include "report/profile_path.h"
#include "report/rows.h"
#include "symbolizer/owner_rules.h"
#include "symbolizer/profile.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {

inline constexpr int kExitDone = 0, kExitFailed = 1, kExitUnusable = 2;

struct Invocation {
  int status = kExitDone;
  bool has_target = false;          // a "--" was given, of run or doctor
  std::vector<std::string> target;  // what stood after it
  struct sigaction inherited_sigpipe {
  }, inherited_sigxfsz{};  // main() ignores them for its own output
};

void AddRunCommand(CLI::App& app, Invocation* invocation);
void AddReportCommand(CLI::App& app, Invocation* invocation);
void AddInstallCommand(CLI::App& app, Invocation* invocation);
void AddListCommand(CLI::App& app, Invocation* invocation);
void AddCheckCommand(CLI::App& app, Invocation* invocation);
void AddDiffCommand(CLI::App& app, Invocation* invocation);
void AddSnapshotCommand(CLI::App& app, Invocation* invocation);
void AddSymbolizeCommand(CLI::App& app, Invocation* invocation);
void AddPrintCommand(CLI::App& app, Invocation* invocation);
void AddDoctorCommand(CLI::App& app, Invocation* invocation);
void AddControlCommands(CLI::App& app, Invocation* invocation);  // pause, resume, set
void AddRulesCommand(CLI::App& app, Invocation* invocation);
void AddWatchCommand(CLI::App& app, Invocation* invocation);
void AddRollupCommand(CLI::App& app, Invocation* invocation);
void AddRssCommand(CLI::App& app, Invocation* invocation);

// Prints "cadastre: MESSAGE" and returns kExitUnusable.
int Fail(const absl::Status& status);
int Fail(absl::string_view message);

// Writes to stdout and checks that all of it went out: a full disk behind a redirection is an error, a closed pipe is
// not.
int Print(const std::string& text);
// The same for a text that comes in pieces. Example: return PrintPieces([&](TextSink sink) { WriteJson(report, sink);
// });
int PrintPieces(absl::FunctionRef<void(TextSink)> write);

// A profile with everything that a report on it needs. Lives on the heap because its parts point at each other.
struct LoadedProfile {
  ProfilePath where;
  Profile profile;
  OwnerRules rules;
  std::unique_ptr<Symbolizer> symbolizer;
  std::unique_ptr<Attribution> attribution;
};
// Names as a user who says nothing about them wants them: found here, kept in the cache.
SymbolizerOptions DefaultSymbols();
absl::StatusOr<std::unique_ptr<LoadedProfile>> LoadProfile(const std::string& argument, const std::string& rules_flag,
                                                           const SymbolizerOptions& symbols = DefaultSymbols());

// Flags that several commands have, with the same words.
void AddRulesOption(CLI::App* command, std::string* rules);
void AddSymbolOptions(CLI::App* command, SymbolizerOptions* symbols);  // --root, --symbol-cache
CLI::Option* AddMinSamplesOption(CLI::App* command, uint64_t* samples);

// --root names a directory, or nothing.
absl::Status CheckRoot(const std::string& root);

// "512k", "64Mi", "1g": powers of 1024.
absl::StatusOr<uint64_t> ParseSize(const std::string& text);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_COMMAND_H_
