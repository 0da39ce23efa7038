// `cadastre doctor`: does preloading work here, what is there, what is missing. Changes nothing; runs `sh -c :` once
// with the preload.
#include <gnu/libc-version.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/cli/child_process.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/cli/live_file_watch.h"
#include "report/executable_facts.h"
#include "report/function_name.h"
#include "report/preload.h"
#include "report/process_info.h"
#include "report/runtime_facts.h"
#include "report/text_table.h"

namespace cadastre {
namespace {

class Doctor {
 public:
  explicit Doctor(TextStyle style) : style_(style) {}

  void Good(const std::string& what, const std::string& found) { Add(style_.Bold("ok     "), what, found); }
  void Note(const std::string& what, const std::string& found) { Add("note   ", what, found); }
  void Warn(const std::string& what, const std::string& found) { Add(style_.Warning("warning"), what, found); }
  void Bad(const std::string& what, const std::string& found) {
    Add(style_.Error("FAULT  "), what, found);
    works_ = false;
  }
  bool works() const { return works_; }
  const std::string& text() const { return out_; }

 private:
  void Add(const std::string& mark, const std::string& what, const std::string& found) {
    absl::StrAppend(&out_, mark, " ", SafeText(what), ": ", SafeText(found), "\n");
  }
  TextStyle style_;
  std::string out_;
  bool works_ = true;
};

void CheckMachine(Doctor* doctor) {
  utsname names{};
  uname(&names);
  std::string machine = names.machine;
  if (machine == "x86_64") {
    doctor->Good("machine", absl::StrCat(machine, ", Linux ", names.release));
  } else {
    doctor->Bad("machine", absl::StrCat(machine, "; Cadastre records x86-64 programs"));
  }
  doctor->Good("libc", absl::StrCat("glibc ", gnu_get_libc_version()));
  doctor->Good("rights", "none needed: no ptrace, no root, no perf event");
}

// True: there is a library to preload.
bool CheckLibrary(const absl::StatusOr<Preload>& preload, Doctor* doctor) {
  if (!preload.ok()) {
    doctor->Bad("libcadastre.so", std::string(preload.status().message()));
    return false;
  }
  doctor->Good("libcadastre.so", preload->library() == preload->entry()
                                     ? preload->library()
                                     : absl::StrCat(preload->library(), ", preloaded as ", preload->entry()));
  std::string companion = preload->CompanionLibrary();
  if (companion.empty()) {
    doctor->Warn("libcadastre-unwind.so", "not beside it: stacks through signal frames and DWARF expressions are cut");
  } else {
    doctor->Good("libcadastre-unwind.so", companion);
  }
  return true;
}

std::string CheckDirectory(Doctor* doctor) {
  const char* options = getenv("CADASTRE_OPTIONS");
  std::string directory = OptionValue(options != nullptr ? options : "", "out");
  if (directory.empty()) directory = DefaultLiveDirectory();
  struct statvfs space {};
  if (access(directory.c_str(), W_OK | X_OK) != 0 || statvfs(directory.c_str(), &space) != 0) {
    doctor->Bad("profiles", absl::StrCat(directory, " cannot be written to; name another with out="));
    return "";
  }
  uint64_t free_bytes = static_cast<uint64_t>(space.f_bavail) * space.f_frsize;
  std::string found = absl::StrCat("go to ", directory, ", ", FormatBytes(static_cast<double>(free_bytes)), " free");
  constexpr uint64_t kLittle = 16 << 20;
  if (free_bytes < kLittle) {
    doctor->Warn("profiles", absl::StrCat(found, ": little room; a profile takes up to a quarter of it"));
  } else {
    doctor->Good("profiles", found);
  }
  struct statfs kind {};
  bool in_memory = statfs(directory.c_str(), &kind) == 0 && (kind.f_type == TMPFS_MAGIC || kind.f_type == RAMFS_MAGIC);
  if (!in_memory) doctor->Warn("profiles", absl::StrCat(directory, " is not on tmpfs: a store may wait for the disk"));
  return directory;
}

// The one proof that counts: a small program, recorded.
void CheckThatItWorks(const Preload& preload, const std::string& directory, Doctor* doctor) {
  std::string name = absl::StrCat("cadastre-doctor-", getpid(), ".cad");
  LiveFileWatch watch(directory, name);
  ChildProcess child;
  absl::Status started = child.Start(
      {"/bin/sh", "-c", ":"},
      [&](pid_t pid) {
        unsetenv("CADASTRE_OPTIONS");
        preload.SetEnvironment(absl::StrCat("interval=1,memory=4m,out=", directory, ",name=", name, ",for=", pid));
      },
      [](pid_t) {});
  if (!started.ok()) return doctor->Bad("preloading", std::string(started.message()));
  child.Wait([] {}, -1);
  bool recorded = watch.Poll();
  if (recorded) {
    absl::StatusOr<Profile> profile = ReadProfile(watch.path());
    if (profile.ok() && profile->recorded_samples > 0) {
      doctor->Good("preloading", absl::StrCat("works: `sh -c :` was recorded, ", profile->recorded_samples,
                                              " allocations, malloc of ", profile->allocator));
    } else {
      doctor->Bad("preloading",
                  profile.ok() ? "`sh -c :` left a profile without a sample" : std::string(profile.status().message()));
    }
    unlink(watch.path().c_str());
  } else {
    doctor->Bad("preloading", absl::StrCat("`sh -c :` was not recorded; it ended with ", child.ExitStatus()));
  }
}

void CheckPreloadChain(const std::string& chain, Doctor* doctor) {
  std::string before;
  bool seen = false;
  for (absl::string_view entry : absl::StrSplit(chain, absl::ByAnyChar(" :"), absl::SkipEmpty())) {
    std::string name(FileName(entry));
    if (absl::StartsWith(name, "libcadastre.so")) seen = true;
    if (IsAllocatorLibrary(name) && !seen && before.empty()) before = name;
  }
  if (seen && !before.empty()) {
    doctor->Bad("LD_PRELOAD",
                absl::StrCat(before, " stands before libcadastre.so and serves malloc: put libcadastre.so first"));
  } else if (!chain.empty()) {
    doctor->Good("LD_PRELOAD", absl::StrCat(chain, seen ? "" : "; `cadastre run` puts libcadastre.so before it"));
  }
}

void CheckExecutable(const std::string& command, Doctor* doctor) {
  absl::StatusOr<ExecutableFacts> facts = InspectExecutable(command);
  if (!facts.ok()) return doctor->Bad(command, std::string(facts.status().message()));
  for (const std::string& script : facts->scripts)
    doctor->Note(command, absl::StrCat(script, " is a script; what it starts is recorded too"));
  std::string why = WhyNotPreloaded(*facts);
  if (!why.empty()) return doctor->Bad(command, why);
  doctor->Good(command, absl::StrCat(facts->path, " is dynamic (", facts->loader, ") and can be preloaded"));
  char* real = realpath(facts->path.c_str(), nullptr);
  std::string path = real != nullptr ? real : facts->path;
  free(real);
  if (FileName(path) != "java") return;
  // .../bin/java → .../lib/server/libjvm.so
  std::string home = path.substr(0, path.size() - sizeof("/bin/java") + 1);
  for (const char* place :
       {"/lib/server/libjvm.so", "/jre/lib/amd64/server/libjvm.so", "/lib/amd64/server/libjvm.so"}) {
    std::string libjvm = home + place;
    if (access(libjvm.c_str(), R_OK) != 0) continue;
    std::string version = JavaVersionOf(libjvm);
    return doctor->Good("JVM", absl::StrCat("java ", version.empty() ? "of unknown version" : version, ", ", libjvm));
  }
  doctor->Warn("JVM", absl::StrCat("no libjvm.so under ", home));
}

void CheckProcess(pid_t pid, Doctor* doctor) {
  std::string name = absl::StrCat("process ", pid);
  if (!ProcessExists(pid)) return doctor->Bad(name, "there is none");
  if (ReadWholeFile(absl::StrCat("/proc/", pid, "/maps"), 1).empty())
    return doctor->Bad(name, "its mappings cannot be read: not ours to look at");
  std::string environment = ReadWholeFile(absl::StrCat("/proc/", pid, "/environ"));
  for (absl::string_view variable : absl::StrSplit(environment, '\0')) {
    if (absl::StartsWith(variable, "LD_PRELOAD=")) CheckPreloadChain(std::string(variable.substr(11)), doctor);
    if (absl::StartsWith(variable, "CADASTRE_OPTIONS=")) doctor->Note(name, std::string(variable));
  }
  if (!MapsFileNamed(pid, "libcadastre")) {
    return doctor->Bad(
        name, "was not started with Cadastre; there is no attach: memory allocated earlier would have no owner");
  }
  std::vector<MappedProfile> profiles = MappedProfilesOf(pid);
  if (profiles.empty())
    return doctor->Warn(name, "has Cadastre preloaded, but no sample was due yet: there is no profile");
  for (const MappedProfile& profile : profiles) {
    if (profile.open_path.empty()) {
      doctor->Bad(name, absl::StrCat("records to ", profile.path, ", which cannot be opened from here"));
      continue;
    }
    absl::StatusOr<Profile> read = ReadProfile(profile.open_path);
    if (!read.ok()) {
      doctor->Bad(name, std::string(read.status().message()));
      continue;
    }
    Trust trust = JudgeProfile(*read, 1);
    std::string found = absl::StrCat("records to ", profile.open_path, ", ", read->recorded_samples,
                                     " samples, malloc of ", read->allocator);
    if (trust.usable) {
      doctor->Good(name, found);
    } else {
      doctor->Bad(name, absl::StrCat(found, "; ", trust.reason));
    }
  }
  if (MapsFileNamed(pid, "libjvm.so")) doctor->Good("JVM", absl::StrCat(name, " is one"));
}

struct DoctorCommand {
  pid_t pid = 0;
};

int Examine(const DoctorCommand& command, const Invocation& invocation) {
  Doctor doctor(StyleForDescriptor(STDOUT_FILENO));
  CheckMachine(&doctor);
  absl::StatusOr<Preload> preload = Preload::Find();
  bool library = CheckLibrary(preload, &doctor);
  std::string directory = CheckDirectory(&doctor);
  if (library && !directory.empty()) CheckThatItWorks(*preload, directory, &doctor);
  const char* chain = getenv("LD_PRELOAD");
  if (chain != nullptr) CheckPreloadChain(chain, &doctor);
  if (!invocation.target.empty()) {
    CheckExecutable(invocation.target[0], &doctor);
  } else if (command.pid == 0) {
    absl::StatusOr<std::string> java = FindInPath("java");
    if (java.ok()) {
      CheckExecutable("java", &doctor);
    } else {
      doctor.Note("JVM", "no java in PATH");
    }
  }
  if (command.pid != 0) CheckProcess(command.pid, &doctor);
  int printed = Print(doctor.text());
  return printed != kExitDone ? printed : doctor.works() ? kExitDone : kExitFailed;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Invocation* invocation) {
  auto options = std::make_shared<DoctorCommand>();
  CLI::App* command = app.add_subcommand("doctor", "does preloading work here, what is there, what is missing");
  command->add_option("--pid", options->pid, "look at this process")->check(WholeNumber(1, INT_MAX));
  command->footer(
      "Usage: cadastre doctor [-- CMD... | --pid PID]\nExit status: 0 it works, 1 something is in the way.\nExample: "
      "cadastre doctor -- java");
  command->callback([=] { invocation->status = Examine(*options, *invocation); });
}

}  // namespace cadastre
