// Whether a program can be preloaded into, read from its file: the loader ignores LD_PRELOAD for some and there is none
// for others.
//
// Errors: NotFound or PermissionDenied as execvp would say. Thread-safety: reads files.
//
// Example:
//   absl::StatusOr<ExecutableFacts> facts = InspectExecutable("java");
//   if (facts.ok()) std::cout << WhyNotPreloaded(*facts);   // "" = it can be
#ifndef CADASTRE_REPORT_EXECUTABLE_FACTS_H_
#define CADASTRE_REPORT_EXECUTABLE_FACTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cadastre {

struct ExecutableFacts {
  std::string path;                  // of the ELF file that runs in the end
  std::vector<std::string> scripts;  // scripts on the way to it ("#!")
  bool elf = false, x86_64 = false;
  std::string loader;  // PT_INTERP; empty = static
  bool musl = false;
  bool setuid = false;                     // setuid, setgid or file capabilities that change who it runs as
  bool defines_malloc = false;             // an executable's own malloc comes before every preloaded one
  std::string sanitizer;                   // "AddressSanitizer", ...: its runtime serves malloc; empty = none
  bool sanitizer_refuses_preload = false;  // a shared AddressSanitizer wants to be the first library
  std::string
      private_allocator;  // a function of an allocator that is linked in under names of its own; empty = none found
};

// `command` is looked up in PATH as execvp does.
absl::StatusOr<ExecutableFacts> InspectExecutable(const std::string& command);

// One line that says why nothing of it can be recorded, or empty.
std::string WhyNotPreloaded(const ExecutableFacts& facts);

// What a loaded library would allocate past Cadastre: "malloc" if it defines that itself, or a function of an allocator
// that is linked in under names of its own. Empty = nothing found.
std::string AllocatorInside(const std::string& library_path);

absl::StatusOr<std::string> FindInPath(const std::string& command);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_EXECUTABLE_FACTS_H_
