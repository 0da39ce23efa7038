// `cadastre`: the command line. One file per command beside this one.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include <algorithm>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "report/cli/choices.h"
#include "report/cli/command.h"

namespace {

constexpr char kFooter[] =
    "P is a profile, a PID that is being recorded, or either with @LABEL, @last, @peak or @UPTIME (a snapshot of it).\n"
    "Exit status: 0 done, 1 a gate failed, 2 usage, input or an unusable profile.\n"
    "Example: cadastre run -- java -jar app.jar";

// How many of the words after `cadastre run` are run's own: up to "--" or to the first that is neither an option nor an
// option's value.
size_t OwnWords(CLI::App* run, const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size() && words[at] != "--" && words[at].size() > 1 && words[at][0] == '-') {
    const std::string& word = words[at++];
    bool has_value = word.find('=') != std::string::npos || (word[1] != '-' && word.size() > 2);  // --a=b, -oFILE
    CLI::Option* option = run->get_option_no_throw(word);
    if (!has_value && option != nullptr && option->get_items_expected_max() > 0 && at < words.size()) at++;
  }
  return at;
}

// Another program's command line goes to the invocation: the parser never sees it. It stands after "--" and, for `run`,
// may begin with the program's name. Of other commands "--" says that no options follow, as the parser knows.
std::vector<std::string> TakeTarget(CLI::App& app, std::vector<std::string> words, cadastre::Invocation* invocation) {
  auto end = words.end();
  if (!words.empty() && words[0] == "doctor") end = std::find(words.begin(), words.end(), "--");
  if (!words.empty() && words[0] == "run") {
    std::vector<std::string> rest(words.begin() + 1, words.end());
    end = words.begin() + 1 + static_cast<std::ptrdiff_t>(OwnWords(app.get_subcommand("run"), rest));
  }
  if (end == words.end()) return words;
  invocation->has_target = true;
  invocation->target.assign(*end == "--" ? end + 1 : end, words.end());
  words.erase(end, words.end());
  return words;
}

// CLI11 counts arguments; a user wants to know which one is missing or there twice.
std::string InOurWords(const CLI::ParseError& error) {
  std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return text;
  bool too_many = text.find("received") != std::string::npos && text.find("At Most") != std::string::npos;
  return text.substr(0, text.find(':')) + (too_many ? " is given more than once" : ": its value is missing");
}

int Main(int argc, char** argv, cadastre::Invocation* invocation) {
  CLI::App app{"Cadastre: which module and team own a process's native memory", "cadastre"};
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", "cadastre " CADASTRE_VERSION);
  app.add_subcommand("version", "prints the version")->callback([invocation] {
    invocation->status = cadastre::Print("cadastre " CADASTRE_VERSION "\n");
  });
  cadastre::AddRunCommand(app, invocation);
  cadastre::AddReportCommand(app, invocation);
  cadastre::AddInstallCommand(app, invocation);
  cadastre::AddListCommand(app, invocation);
  cadastre::AddCheckCommand(app, invocation);
  cadastre::AddRssCommand(app, invocation);
  cadastre::AddDiffCommand(app, invocation);
  cadastre::AddSnapshotCommand(app, invocation);
  cadastre::AddSymbolizeCommand(app, invocation);
  cadastre::AddPrintCommand(app, invocation);
  cadastre::AddDoctorCommand(app, invocation);
  cadastre::AddControlCommands(app, invocation);
  cadastre::AddRulesCommand(app, invocation);
  cadastre::AddWatchCommand(app, invocation);
  cadastre::AddRollupCommand(app, invocation);
  app.add_subcommand("help", "help on a command");
  std::vector<std::string> arguments = TakeTarget(app, {argv + 1, argv + argc}, invocation);
  if (!arguments.empty() && arguments[0] == "help") {
    arguments.erase(arguments.begin());
    arguments.resize(std::min<size_t>(arguments.size(), 1));
    arguments.push_back("--help");
  }
  std::string unknown = cadastre::UnknownCommand(app, arguments);
  if (!unknown.empty()) return cadastre::Fail("no command \"" + unknown + "\"; see cadastre --help");
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::Success& success) {
    std::ostringstream text;
    app.exit(success, text);  // --help, --version
    return cadastre::Print(text.str());
  } catch (const CLI::ParseError& error) {
    std::string command = arguments.empty()               ? ""
                          : app.get_subcommands().empty() ? ""
                                                          : " " + app.get_subcommands().back()->get_name();
    return cadastre::Fail(InOurWords(error) + "; see cadastre" + command + " --help");
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
  // Beyond a file size limit a write fails with EFBIG instead.
  sigaction(SIGXFSZ, &ignore, &invocation.inherited_sigxfsz);
  try {
    return Main(argc, argv, &invocation);
  } catch (const std::exception& error) {
    return cadastre::Fail(std::string("internal error: ") + error.what());
  }
}
