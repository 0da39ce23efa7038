// `cadastre install`: copies itself and what it preloads into a directory, as an initContainer does for the container
// beside it. Needs no shell and no other program.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "report/cli/command.h"
#include "report/output_file.h"
#include "report/preload.h"

namespace cadastre {
namespace {

// Readable and executable for all: the program beside may be another user's.
absl::Status CopyOne(const std::string& from, const std::string& to) {
  absl::StatusOr<OutputFile> out = OutputFile::Create(to);
  if (!out.ok()) return out.status();
  const int in = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return ErrnoStatus(errno, "cannot open", from);
  char buffer[1 << 16];
  ssize_t got;
  bool written = true;
  while (written && (got = read(in, buffer, sizeof(buffer))) > 0) {
    for (ssize_t at = 0; at < got && written;) {
      const ssize_t put = write(out->descriptor(), buffer + at, static_cast<size_t>(got - at));
      written = put > 0;
      at += put;
    }
  }
  const int error = errno;
  close(in);
  if (!written || got < 0) return ErrnoStatus(error, written ? "cannot read" : "cannot write", written ? from : to);
  if (fchmod(out->descriptor(), 0755) != 0) return ErrnoStatus(errno, "cannot write", to);
  return out->Commit(OutputFile::kOverwrite);
}

int Install(const std::string& directory) {
  absl::StatusOr<Preload> preload = Preload::Find();
  if (!preload.ok()) return Fail(preload.status());
  const std::string companion = preload->CompanionLibrary();
  if (companion.empty()) return Fail(absl::StrCat("libcadastre-unwind.so is not beside ", preload->library()));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Fail(absl::StrCat("cannot make ", directory, ": ", error.message()));
  const std::pair<std::string, const char*> files[] = {
      {"/proc/self/exe", "cadastre"}, {preload->library(), "libcadastre.so"}, {companion, "libcadastre-unwind.so"}};
  for (const auto& [from, name] : files) {
    if (absl::Status status = CopyOne(from, absl::StrCat(directory, "/", name)); !status.ok()) return Fail(status);
  }
  if (getauxval(AT_BASE) != 0) {  // there is a program interpreter
    absl::FPrintF(
        stderr,
        "cadastre: note: this command is linked dynamically, and its copy needs the same libraries where it runs; "
        "scripts/bundle makes one that needs none\n");
  }
  return kExitDone;
}

}  // namespace

void AddInstallCommand(CLI::App& app, Invocation* invocation) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("install", "copies this command and what it preloads to a directory");
  command->add_option("DIR", *directory, "is made if it is not there")->required();
  command->footer("Example: cadastre install /shared");
  command->callback([=] { invocation->status = Install(*directory); });
}

}  // namespace cadastre
