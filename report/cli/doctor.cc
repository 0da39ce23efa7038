// `cadastre doctor`: does preloading work here, what is there, what is missing. Changes nothing; runs `sh -c :` once
// with the preload, and `java -version` where a JVM is asked about.
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "interposer/profile_format.h"
#include "report/cli/child_process.h"
#include "report/cli/choices.h"
#include "report/cli/command.h"
#include "report/cli/live_file_watch.h"
#include "report/executable_facts.h"
#include "report/function_name.h"
#include "report/live_place.h"
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

std::optional<LivePlace> CheckDirectory(Doctor* doctor) {
  const char* options = getenv("CADASTRE_OPTIONS");
  std::string directory = OptionValue(options != nullptr ? options : "", "out");
  if (directory.empty()) directory = DefaultLiveDirectory();
  std::string pattern;
  directory = LiveDirectoryOf(directory, &pattern);
  struct statvfs space {};
  absl::StatusOr<LivePlace> place = LivePlace::Find(directory);
  if (!place.ok() || statvfs(directory.c_str(), &space) != 0) {
    doctor->Bad("profiles", absl::StrCat(place.status().message(), "; name another directory with out="));
    return std::nullopt;
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
  return *place;
}

// Limits that a profile needs room in. `ulimit` passes them on to everything that is started from here.
void CheckLimits(Doctor* doctor) {
  constexpr uint64_t kSmallestProfile = 1 << 20, kUsualProfile = 64 << 20, kShare = 16;  // interposer/profile_file.cc
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kUsualProfile) {
    std::string found = absl::StrCat("is ", FormatBytes(static_cast<double>(limit.rlim_cur)));
    if (limit.rlim_cur < kSmallestProfile) {
      doctor->Bad("file size limit (ulimit -f)", absl::StrCat(found, ": no room for a profile"));
    } else {
      doctor->Warn("file size limit (ulimit -f)", absl::StrCat(found, ": a profile is no larger"));
    }
  }
  struct Shared {
    decltype(RLIMIT_AS) resource;
    const char* name;
  };
  for (const auto& [resource, name] :
       {Shared{RLIMIT_AS, "address space limit (ulimit -v)"}, Shared{RLIMIT_DATA, "data size limit (ulimit -d)"}}) {
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur / kShare >= kUsualProfile) continue;
    std::string found = absl::StrCat("is ", FormatBytes(static_cast<double>(limit.rlim_cur)));
    if (limit.rlim_cur / kShare < kSmallestProfile) {
      doctor->Bad(name, absl::StrCat(found, ": no room for a profile"));
    } else {
      doctor->Warn(name, absl::StrCat(found, ": a profile is a sixteenth of it"));
    }
  }
}

// The one proof that counts: a small program, recorded.
void CheckThatItWorks(const Preload& preload, const LivePlace& place, Doctor* doctor) {
  std::optional<LiveFileWatch> watch;
  ChildProcess child;
  absl::Status started = child.Start(
      {"/bin/sh", "-c", ":"},
      [&](pid_t pid) {
        unsetenv("CADASTRE_OPTIONS");
        preload.SetEnvironment(absl::StrCat("interval=1,memory=4m,out=", place.out(), ",for=", pid));
      },
      [&](pid_t pid) { watch.emplace(place, pid); });
  if (!started.ok()) return doctor->Bad("preloading", std::string(started.message()));
  child.Wait([] {}, -1);
  bool recorded = watch->Poll();
  std::string reason = watch->TakeReason();
  if (recorded) {
    absl::StatusOr<Profile> profile = ReadProfile(watch->path());
    if (profile.ok() && profile->recorded_samples > 0) {
      doctor->Good("preloading", absl::StrCat("works: `sh -c :` was recorded, ", profile->recorded_samples,
                                              " allocations, malloc of ", profile->allocator));
    } else {
      doctor->Bad("preloading",
                  profile.ok() ? "`sh -c :` left a profile without a sample" : std::string(profile.status().message()));
    }
    unlink(watch->path().c_str());
  } else if (access("/bin/sh", X_OK) != 0) {
    doctor->Warn("preloading", "not tried: there is no /bin/sh here; `cadastre run -- PROGRAM` says whether it works");
  } else {
    doctor->Bad("preloading", absl::StrCat("`sh -c :` was not recorded; it ended with ", child.ExitStatus(),
                                           reason.empty() ? "" : "; ", reason));
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

// "JDK 17 (17.0.15+6), collector G1: Java frames are in the stacks"
void SayJvmFacts(const JvmFacts& jvm, Doctor* doctor) {
  if (jvm.walker == format::kWalkerNoJvm) {
    return doctor->Warn("Java frames", "this JVM does not describe itself as HotSpot does: native frames only");
  }
  std::string name = absl::StrCat("JDK ", jvm.feature, " (", jvm.version, ")",
                                  jvm.collector.empty() ? "" : absl::StrCat(", collector ", jvm.collector));
  if (jvm.walker == format::kWalkerActive) return doctor->Good("Java frames", absl::StrCat(name, ": they are read"));
  doctor->Warn("Java frames",
               absl::StrCat(name, ": native frames only, for libjvm.so does not say where to find ", jvm.missing));
}

// The flags that decide what the JVM is like: those of the JVM itself, up to the class or the jar.
std::vector<std::string> JvmFlags(const std::vector<std::string>& command) {
  std::vector<std::string> flags;
  for (size_t i = 1; i < command.size() && absl::StartsWith(command[i], "-") && command[i] != "-jar"; i++) {
    const std::string& word = command[i];
    if (absl::StartsWith(word, "-X") || word == "-server" || word == "-client") flags.push_back(word);
    bool has_value = word == "-cp" || word == "-classpath" || word == "--class-path" || word == "-p" ||
                     word == "--module-path" || word == "--add-modules" || word == "-m" || word == "--module";
    if (has_value) i++;
  }
  return flags;
}

// Asks the JVM itself, recorded.
void CheckJavaFrames(const Preload& preload, const LivePlace& place, const std::string& java,
                     const std::vector<std::string>& command, Doctor* doctor) {
  std::vector<std::string> words = {java};
  for (const std::string& flag : JvmFlags(command)) words.push_back(flag);
  words.push_back("-version");
  std::optional<LiveFileWatch> watch;
  ChildProcess child;
  absl::Status started = child.Start(
      words,
      [&](pid_t pid) {
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int descriptor = 0; descriptor <= 2 && null >= 0; descriptor++) dup2(null, descriptor);
        unsetenv("CADASTRE_OPTIONS");
        preload.SetEnvironment(absl::StrCat("interval=1,memory=32m,out=", place.out(), ",for=", pid));
      },
      [&](pid_t pid) { watch.emplace(place, pid); });
  std::string said = absl::StrCat("`", absl::StrJoin(words, " "), "`");
  if (!started.ok()) return doctor->Bad(said, std::string(started.message()));
  child.Wait([] {}, -1);
  if (!watch->Poll()) {
    return doctor->Bad(said, absl::StrCat("was not recorded; it ended with ", child.ExitStatus()));
  }
  absl::StatusOr<Profile> profile = ReadProfile(watch->path());
  unlink(watch->path().c_str());
  if (!profile.ok()) return doctor->Bad(said, std::string(profile.status().message()));
  if (child.ExitStatus() != 0) doctor->Bad(said, absl::StrCat("ended with ", child.ExitStatus()));
  SayJvmFacts(profile->jvm, doctor);
}

// Returns the path of a JVM's launcher, empty if it is another program.
std::string CheckExecutable(const std::string& command, Doctor* doctor) {
  absl::StatusOr<ExecutableFacts> facts = InspectExecutable(command);
  if (!facts.ok()) {
    doctor->Bad(command, std::string(facts.status().message()));
    return "";
  }
  for (const std::string& script : facts->scripts)
    doctor->Note(command, absl::StrCat(script, " is a script; what it starts is recorded too"));
  std::string why = WhyNotPreloaded(*facts);
  if (!why.empty()) {
    doctor->Bad(command, why);
    return "";
  }
  doctor->Good(command, absl::StrCat(facts->path, " is dynamic (", facts->loader, ") and can be preloaded"));
  if (!facts->private_allocator.empty()) {
    doctor->Warn(command, absl::StrCat("has an allocator of its own inside (", facts->private_allocator,
                                       "): what it allocates there is not seen"));
  }
  char* real = realpath(facts->path.c_str(), nullptr);
  std::string path = real != nullptr ? real : facts->path;
  free(real);
  if (FileName(path) != "java") return "";
  // .../bin/java → .../lib/server/libjvm.so
  std::string home = path.substr(0, path.size() - sizeof("/bin/java") + 1);
  for (const char* place :
       {"/lib/server/libjvm.so", "/jre/lib/amd64/server/libjvm.so", "/lib/amd64/server/libjvm.so"}) {
    std::string libjvm = home + place;
    if (access(libjvm.c_str(), R_OK) != 0) continue;
    std::string version = JavaVersionOf(libjvm);
    doctor->Good("JVM", absl::StrCat("java ", version.empty() ? "of unknown version" : version, ", ", libjvm));
    return path;
  }
  doctor->Warn("JVM", absl::StrCat("no libjvm.so under ", home));
  return "";
}

// An allocator that came later, with a plug-in: what is allocated from it directly was bound behind us.
void CheckOtherAllocators(pid_t pid, const Profile& profile, Doctor* doctor) {
  for (const std::string& path : MappedFilesOf(pid)) {
    const std::string name(FileName(path));
    // The loader's name may be a link to the file's own, which only says more of the version.
    if (!IsAllocatorLibrary(path) || absl::StartsWith(name, profile.allocator)) continue;
    doctor->Warn(name,
                 absl::StrCat("is loaded, but malloc is served by ", profile.allocator,
                              ": what is allocated from it by its own names is seen only if it was there at start"));
  }
}

// Libraries that were loaded in a way, or with a malloc of their own, that leads past Cadastre.
void CheckHiddenAllocators(pid_t pid, Doctor* doctor) {
  if (ImagesOf(pid, "libc.so.6") > 1) {
    doctor->Warn("libc.so.6",
                 "is loaded more than once (dlmopen): what libraries of another namespace allocate is not seen");
  }
  const std::string root = absl::StrCat("/proc/", pid, "/root");
  for (const std::string& path : MappedFilesOf(pid)) {
    const std::string name(FileName(path));
    const bool is_library = absl::StrContains(name, ".so");
    const bool has_its_own = absl::StartsWith(name, "libc.so") || absl::StartsWith(name, "ld-linux") ||
                             absl::StartsWith(name, "libcadastre") || IsAllocatorLibrary(path);
    if (!is_library || has_its_own) continue;
    const std::string inside = AllocatorInside(root + path);
    if (inside.empty()) continue;
    doctor->Warn(name, absl::StrCat("has an allocator of its own (", inside,
                                    "): what it allocates there by itself is not seen"));
  }
}

void CheckProcess(pid_t pid, Doctor* doctor) {
  std::string name = absl::StrCat("process ", pid);
  if (!ProcessExists(pid)) return doctor->Bad(name, "there is none");
  if (ReadWholeFile(absl::StrCat("/proc/", TaskWithMemory(pid), "/maps"), 1).empty())
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
  if (profiles.empty()) return doctor->Warn(name, WhyNoProfile(pid));
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
    CheckOtherAllocators(pid, *read, doctor);
    CheckHiddenAllocators(pid, doctor);
    std::string found = absl::StrCat("records to ", profile.open_path, ", ", read->recorded_samples,
                                     " samples, malloc of ", read->allocator);
    if (MapsFileNamed(pid, "libjvm.so")) SayJvmFacts(read->jvm, doctor);
    if (trust.usable) {
      doctor->Good(name, found);
    } else {
      doctor->Bad(name, absl::StrCat(found, "; ", trust.reason));
    }
  }
}

struct DoctorCommand {
  pid_t pid = 0;
};

int Examine(const DoctorCommand& command, const Invocation& invocation) {
  Doctor doctor(StyleForDescriptor(STDOUT_FILENO));
  CheckMachine(&doctor);
  absl::StatusOr<Preload> preload = Preload::Find();
  bool library = CheckLibrary(preload, &doctor);
  std::optional<LivePlace> place = CheckDirectory(&doctor);
  CheckLimits(&doctor);
  if (library && place.has_value()) CheckThatItWorks(*preload, *place, &doctor);
  const char* chain = getenv("LD_PRELOAD");
  if (chain != nullptr) CheckPreloadChain(chain, &doctor);
  const bool can_record = library && place.has_value();
  std::string java_path;
  if (!invocation.target.empty()) {
    java_path = CheckExecutable(invocation.target[0], &doctor);
  } else if (command.pid == 0) {
    absl::StatusOr<std::string> java = FindInPath("java");
    if (java.ok()) {
      java_path = CheckExecutable("java", &doctor);
    } else {
      doctor.Note("JVM", "no java in PATH");
    }
  }
  if (can_record && !java_path.empty()) {
    CheckJavaFrames(*preload, *place, java_path, invocation.target, &doctor);
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
      "Usage: cadastre doctor [-- CMD... | --pid PID]\nFor a JVM, CMD's JVM flags decide what is asked: `CMD -version` "
      "is "
      "run with them and recorded.\nExit status: 0 it works, 1 something is in the way.\nExample: "
      "cadastre doctor -- java");
  command->callback([=] { invocation->status = Examine(*options, *invocation); });
}

}  // namespace cadastre
