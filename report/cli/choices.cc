#include "report/cli/choices.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "interposer/options.h"

namespace cadastre {

CLI::Validator OneOf(std::vector<std::string> words) {
  return CLI::Validator(
      [words](std::string& text) {
        if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
        return absl::StrCat(text, " is not one of ", absl::StrJoin(words, ", "));
      },
      "");
}

CLI::Validator WholeNumber(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [=](std::string& text) {
        uint64_t value = 0;
        bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
        if (!digits || !absl::SimpleAtoi(text, &value)) return absl::StrCat(text, " is not a whole number");
        if (value < least) return absl::StrCat(text, " is less than ", least);
        if (value > most) return absl::StrCat(text, " is more than ", most);
        return std::string();
      },
      "");
}

absl::Status CheckTargetOption(const std::string& name, const std::string& value) {
  Options options;
  SetDefaultOptions(&options);
  const Knob* knob = FindKnob(name.data(), name.size());
  if (knob == nullptr) return absl::InvalidArgumentError(absl::StrCat("--", name, ": no such option"));
  const char* shown = value.empty() ? "\"\"" : value.c_str();
  if (value.find(',') != std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat("--", name, " ", shown, ": a comma cannot stand in an option"));
  if (!knob->set(&options, value.data(), value.size()))
    return absl::InvalidArgumentError(absl::StrCat("--", name, " ", shown, ": write ", knob->accepts));
  return absl::OkStatus();
}

std::string UnknownCommand(CLI::App& app, const std::vector<std::string>& arguments) {
  CLI::App* at = &app;
  for (const std::string& word : arguments) {
    std::vector<CLI::App*> commands = at->get_subcommands([](CLI::App*) { return true; });
    if (commands.empty() || word.empty() || word[0] == '-') return "";
    auto named = std::find_if(commands.begin(), commands.end(), [&](CLI::App* a) { return a->get_name() == word; });
    if (named == commands.end()) return at == &app ? word : absl::StrCat(at->get_name(), " ", word);
    at = *named;
  }
  return "";
}

}  // namespace cadastre
