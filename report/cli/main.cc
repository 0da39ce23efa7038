// `cadastre`: the command line. One file per command beside this one.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <exception>
#include <string>
#include <vector>

#include "report/cli/command.h"

namespace {

constexpr char kFooter[] =
    "P is a profile, a PID that is being recorded, or either with @LABEL, @last, @peak or @UPTIME (a snapshot of it).\n"
    "Exit status: 0 done, 1 a gate failed, 2 usage, input or an unusable profile.\n"
    "Example: cadastre run -- java -jar app.jar";

int Main(int argc, char** argv, cadastre::Invocation* invocation) {
  // What stands after "--" is another program's command line: the parser never sees it.
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; i++) {
    if (!invocation->has_target && strcmp(argv[i], "--") == 0) {
      invocation->has_target = true;
    } else {
      (invocation->has_target ? invocation->target : arguments).push_back(argv[i]);
    }
  }
  CLI::App app{"Cadastre: which module and team own a process's native memory", "cadastre"};
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "cadastre " CADASTRE_VERSION);
  app.add_subcommand("version", "prints the version")->callback([] {
    cadastre::Print("cadastre " CADASTRE_VERSION "\n");
  });
  cadastre::AddRunCommand(app, invocation);
  cadastre::AddReportCommand(app, invocation);
  cadastre::AddListCommand(app, invocation);
  cadastre::AddCheckCommand(app, invocation);
  cadastre::AddSnapshotCommand(app, invocation);
  cadastre::AddSymbolizeCommand(app, invocation);
  cadastre::AddPrintCommand(app, invocation);
  cadastre::AddDoctorCommand(app, invocation);
  cadastre::AddControlCommands(app, invocation);
  cadastre::AddRulesCommand(app, invocation);
  app.add_subcommand("help", "help on a command");
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.resize(std::min<size_t>(arguments.size(), 1));
    arguments.push_back("--help");
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    std::string command = arguments.empty()               ? ""
                          : app.get_subcommands().empty() ? ""
                                                          : " " + app.get_subcommands().back()->get_name();
    return cadastre::Fail(std::string(error.what()) + "; see cadastre" + command + " --help");
  }
  return invocation->status;
}

// A closed stdin, stdout or stderr stays as good as closed: nothing can be read from or written to a mere place in the
// file system, but no file of ours gets its number, so no message goes into a profile. Closed again in what we start.
void ReserveStandardDescriptors() {
  for (int descriptor = 0; descriptor <= 2; descriptor++) {
    if (fcntl(descriptor, F_GETFD) < 0) (void)!open("/", O_PATH | O_CLOEXEC);
  }
}

}  // namespace

int main(int argc, char** argv) {
  ReserveStandardDescriptors();
  // `cadastre report P | head` ends quietly: the write fails with EPIPE instead. What `run` starts gets it back.
  cadastre::Invocation invocation;
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &invocation.inherited_sigpipe);
  try {
    return Main(argc, argv, &invocation);
  } catch (const std::exception& error) {
    return cadastre::Fail(std::string("internal error: ") + error.what());
  }
}
