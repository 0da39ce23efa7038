// `cadastre symbolize`: resolves every name where the binaries are, so that the profile can be reported anywhere.
#include <stdio.h>

#include "report/cli/command.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

struct SymbolizeCommand {
  std::string profile, output;
  SymbolizerOptions symbols = DefaultSymbols();
};

int Symbolize(const SymbolizeCommand& command) {
  if (absl::Status status = CheckRoot(command.symbols.root); !status.ok()) return Fail(status);
  absl::StatusOr<ProfilePath> where = FindProfile(command.profile);
  if (!where.ok()) return Fail(where.status());
  if (!where->note.empty()) fprintf(stderr, "cadastre: %s\n", SafeText(where->note).c_str());
  absl::Status status = WriteSymbolizedProfile(where->path, command.output, command.symbols);
  return status.ok() ? kExitDone : Fail(status);
}

}  // namespace

void AddSymbolizeCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<SymbolizeCommand>();
  CLI::App* command =
      app.add_subcommand("symbolize", "resolves every name, so that the profile can be reported on any machine");
  command->add_option("P", options->profile, "profile, PID, or one with @LABEL")->required();
  command->add_option("-o,--output", options->output, "the profile to write")->required();
  AddSymbolOptions(command, &options->symbols);
  command->footer("Example: cadastre symbolize pay.cad -o pay-named.cad");
  command->callback([=] { invocation->status = Symbolize(*options); });
}

}  // namespace cadastre
