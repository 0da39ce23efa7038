// Which profiles are dead, and what putting them away leaves: a whole copy, or the original, never neither.
#include "report/saved_profiles.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "report/format.h"
#include "report/process_info.h"
#include "report/process_tree.h"
#include "report/profile_copy.h"
#include "report/profile_path.h"
#include "symbolizer/file_use.h"
#include "symbolizer/profile.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using Folder = testing::TemporaryDirectory;

testing::ProfileBuilder Dead(const std::string& exe, uint64_t started_ns = 1000) {
  testing::ProfileBuilder builder;
  builder.header().exe = builder.AddString(exe);
  builder.header().host = builder.AddString("box");
  builder.header().outcome = {};
  builder.header().pid_namespace = 1;  // of nobody here
  builder.header().start_realtime_ns = started_ns;
  return builder;
}

Liveness LivenessOfFile(const std::string& path) {
  ProfileIdentity identity;
  REQUIRE(IdentityOf(path, &identity));
  return LivenessOf(path, identity);
}

TEST_CASE("A file is in use as long as somebody maps it for writing, and no longer", "[saved_profiles]") {
  Folder folder;
  const std::string path = folder / "a.cad";
  REQUIRE(Dead("/bin/a").WriteTo(path));
  CHECK(FileUseOf(path) == FileUse::kIdle);
  CHECK(LivenessOfFile(path) == Liveness::kDead);
  const int descriptor = open(path.c_str(), O_RDWR);
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  REQUIRE(mapped != MAP_FAILED);
  close(descriptor);
  CHECK(FileUseOf(path) == FileUse::kWritten);
  CHECK(LivenessOfFile(path) == Liveness::kInUse);
  CHECK(ReadProfile(path)->end == EndState::kRunning);  // in a pid namespace that we do not see
  munmap(mapped, 4096);
  CHECK(FileUseOf(path) == FileUse::kIdle);
  CHECK(ReadProfile(path)->end == EndState::kLost);
  CHECK(FileUseOf(folder / "none") == FileUse::kUnknown);
}

TEST_CASE("A profile's header says whose it is, and damage is no surprise", "[saved_profiles]") {
  Folder folder;
  testing::ProfileBuilder builder = Dead("/opt/pay/bin/java");
  builder.header().outcome.awaited = 1;
  REQUIRE(builder.WriteTo(folder / "a.cad"));
  ProfileIdentity identity;
  REQUIRE(IdentityOf(folder / "a.cad", &identity));
  CHECK(identity.exe == "/opt/pay/bin/java");
  CHECK(identity.host == "box");
  CHECK(identity.awaited);
  CHECK_FALSE(identity.saved);
  CHECK_FALSE(identity.is_copy);
  builder.header().exe = 0xfffffff0;
  REQUIRE(builder.WriteTo(folder / "a.cad"));
  REQUIRE(IdentityOf(folder / "a.cad", &identity));
  CHECK(identity.exe == "");
  std::filesystem::create_symlink(folder / "a.cad", folder / "link.cad");
  CHECK_FALSE(IdentityOf(folder / "link.cad", &identity));
}

TEST_CASE("What is saved elsewhere is whole there and gone here, with its snapshots", "[saved_profiles]") {
  Folder folder;
  std::filesystem::create_directory(folder / "to");
  REQUIRE(Dead("/bin/a").WriteTo(folder / "a.cad"));
  REQUIRE(Dead("/bin/a").WriteTo(folder / "a.cad@peak"));
  format::MemoryNote note{95 << 20, 100 << 20, 7, 1, 0};
  auto saved = SaveDeadProfile(folder / "a.cad", folder / "to", note);
  REQUIRE(saved.ok());
  CHECK(*saved == folder / "to/a.cad");
  CHECK_FALSE(std::filesystem::exists(folder / "a.cad"));
  CHECK_FALSE(std::filesystem::exists(folder / "a.cad@peak"));
  CHECK(std::filesystem::exists(folder / "to/a.cad@peak"));
  auto profile = ReadProfile(*saved);
  REQUIRE(profile.ok());
  CHECK(profile->saved);
  CHECK(EndText(*profile) == "ended: lost, OOM likely (95.00 of 100.00 MiB)");
  // A name that is taken stays what it is, and so does the original.
  REQUIRE(Dead("/bin/b").WriteTo(folder / "a.cad"));
  CHECK_FALSE(SaveDeadProfile(folder / "a.cad", folder / "to", {}).ok());
  CHECK(std::filesystem::exists(folder / "a.cad"));
  CHECK(ReadProfile(folder / "to/a.cad")->exe == "/bin/a");
}

TEST_CASE("What is saved in its place is packed and marked", "[saved_profiles]") {
  Folder folder;
  testing::ProfileBuilder builder = Dead("/bin/a");
  builder.set_spare_pages(1000);
  REQUIRE(builder.WriteTo(folder / "a.cad"));
  auto saved = SaveDeadProfile(folder / "a.cad", "", {});
  REQUIRE(saved.ok());
  CHECK(*saved == folder / "a.cad");
  CHECK(std::filesystem::file_size(*saved) < (1 << 20));
  CHECK(ReadProfile(*saved)->saved);
}

TEST_CASE("The peak of a process that has ended is packed again, and is still the older snapshot", "[saved_profiles]") {
  Folder folder;
  testing::ProfileBuilder builder = Dead("/bin/a");
  const uint32_t site = builder.AddSite({format::MakeUnknownFrame(format::kFrameUnknown, 0)});
  for (uint64_t i = 0; i < 20000; i++)
    builder.AddSample(site, 0x7f0000000000 + 64 * (i * 7919 % 200000), 24 + i % 97, 100 + i % 97);
  const std::string live = folder / "a.cad", peak = folder / "a.cad@peak";
  REQUIRE(builder.WriteTo(live));
  REQUIRE(CopyProfile(live, peak, {.label = "peak"}).ok());
  REQUIRE(CopyProfile(live, folder / "a.cad@later", {.label = "later"}).ok());
  const auto size = std::filesystem::file_size(peak);
  const auto live_samples = ReadProfile(peak)->live.size();
  const std::vector<std::string> snapshots = SnapshotsOf(live);
  REQUIRE(snapshots.size() == 2);
  REQUIRE(SaveDeadProfile(live, "", {}).ok());
  CHECK(std::filesystem::file_size(peak) < size * 95 / 100);
  absl::StatusOr<Profile> again = ReadProfile(peak);
  REQUIRE(again.ok());
  CHECK(again->incomplete == "");
  CHECK(again->label == "peak");
  CHECK(again->live.size() == live_samples);
  CHECK(SnapshotsOf(live) == snapshots);
  // Nothing more is to be had, and what is damaged stays as it is.
  const auto smaller = std::filesystem::file_size(peak);
  PackPeakOf(live);
  CHECK(std::filesystem::file_size(peak) == smaller);
  std::filesystem::resize_file(peak, smaller / 2);
  PackPeakOf(live);
  CHECK(std::filesystem::file_size(peak) == smaller / 2);
}

TEST_CASE("Of the saved profiles of each program the oldest go", "[saved_profiles]") {
  Folder folder;
  auto put = [&](const std::string& name, const std::string& exe, uint64_t started, bool is_saved) {
    testing::ProfileBuilder builder = Dead(exe, started);
    builder.header().outcome.saved = is_saved;
    REQUIRE(builder.WriteTo(folder / name));
  };
  put("a1.cad", "/bin/a", 1, true);
  put("a1.cad@peak", "/bin/a", 1, true);
  put("a2.cad", "/bin/a", 2, true);
  put("a3.cad", "/bin/a", 3, true);
  put("a0.cad", "/bin/a", 0, false);  // nobody has seen it
  put("b1.cad", "/bin/b", 1, true);
  RemoveSavedBeyond(folder.path(), 2);
  CHECK_FALSE(std::filesystem::exists(folder / "a1.cad"));
  CHECK_FALSE(std::filesystem::exists(folder / "a1.cad@peak"));
  for (const char* name : {"a0.cad", "a2.cad", "a3.cad", "b1.cad"}) CHECK(std::filesystem::exists(folder / name));
  RemoveSavedBeyond(folder.path(), 0, "/bin/b");
  CHECK_FALSE(std::filesystem::exists(folder / "b1.cad"));
  CHECK(std::filesystem::exists(folder / "a3.cad"));
}

TEST_CASE("An OOM kill is told by the cgroup's count, or by memory near its limit", "[saved_profiles]") {
  Profile profile;
  profile.end = EndState::kLost;
  profile.memory_note = {3 << 20, 4 << 20, 1, true, 0};
  CHECK(OomKillOf(profile) == OomKill::kNo);
  CHECK(EndText(profile) == "ended: lost");
  profile.memory_note.used_bytes = 3900 << 10;
  CHECK(EndText(profile) == "ended: lost, OOM likely (3.81 of 4.00 MiB)");
  profile.memory_note.oom_kills = 1;
  CHECK(EndText(profile) == "ended: lost, OOM kill (3.81 of 4.00 MiB)");
  profile.end = EndState::kSignal;
  profile.end_value = 9;
  CHECK(EndText(profile) == "ended: signal 9 (SIGKILL), OOM kill (3.81 of 4.00 MiB)");
  profile.end_value = 15;
  CHECK(EndText(profile) == "ended: signal 15 (SIGTERM)");
  profile.end = EndState::kExit;
  CHECK(OomKillOf(profile) == OomKill::kNo);
}

TEST_CASE("Processes that were not recorded are counted by name", "[saved_profiles]") {
  std::set<SeenProgram> seen = {{10, 1, "sh"}, {10, 1, "java"}, {11, 2, "sleep"}, {12, 3, "sleep"}};
  CHECK(NotRecordedText(seen, {{10, "java"}}) == "3 processes not recorded: sleep (2), sh");
  CHECK(NotRecordedText({{10, 1, "sh"}}, {}) == "1 process not recorded: sh");
  CHECK(NotRecordedText({{10, 1, "sh"}}, {{10, "sh"}}) == "");
  // Cut to the kernel's 15 characters, where the first thread has ended.
  CHECK(NotRecordedText({{10, 1, "a-service-of-me"}}, {{10, "a-service-of-mercury"}}) == "");
  CHECK(NotRecordedText({{10, 1, "a-service"}}, {{10, "a-service-of-mercury"}}) != "");
  CHECK(NotRecordedText({{11, 1, "a-service-of-me"}}, {{10, "a-service-of-mercury"}}) != "");
}

TEST_CASE("A child is seen while it lives, and its program by name", "[saved_profiles]") {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) execlp("sleep", "sleep", "60", nullptr);
    (void)!write(ready[1], "x", 1);
    pause();
    _exit(1);
  }
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  ProcessTree tree(child);
  // The grandchild becomes sleep at some moment.
  auto has_sleep = [&] {
    for (const SeenProgram& program : tree.seen()) {
      if (program.name == "sleep") return true;
    }
    return false;
  };
  pid_t grandchild = 0;
  while (!has_sleep()) tree.Look();
  for (const SeenProgram& program : tree.seen()) {
    if (program.name == "sleep") grandchild = program.pid;
  }
  CHECK(grandchild != child);
  CHECK(ProgramOf(grandchild) == "sleep");
  kill(grandchild, SIGKILL);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace cadastre
