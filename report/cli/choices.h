// Checks of what is given to an option, in our words: CLI11's own speak of its internals.
//
// Errors: the option's name is put before what these say: "--by: foo is not one of module, team". Thread-safety: plain
// values.
//
// Example: command->add_option("--format", options->format, "text or json")->check(OneOf({"text", "json"}));
#ifndef CADASTRE_REPORT_CLI_CHOICES_H_
#define CADASTRE_REPORT_CLI_CHOICES_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace cadastre {

CLI::Validator OneOf(std::vector<std::string> words);

// Digits alone, and not less than `least` or more than `most`.
CLI::Validator WholeNumber(uint64_t least, uint64_t most = INT64_MAX);

// Whether the program would understand CADASTRE_OPTIONS="NAME=VALUE".
absl::Status CheckTargetOption(const std::string& name, const std::string& value);

// What stands where a command's name is due and is none: "nosuch", "rules nosuch"; empty: all are known.
std::string UnknownCommand(CLI::App& app, const std::vector<std::string>& arguments);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_CLI_CHOICES_H_
