// "ended: lost" sends somebody to look for an OOM kill, "running" makes them wait: the decision is checked against real
// processes.
#include "symbolizer/end_state.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "symbolizer/file_use.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using testing::ProfileBuilder;
using testing::TemporaryDirectory;

uint64_t StartTicks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(line.rfind(')') + 2));
  std::string field;
  for (int i = 3; i <= 22; i++) rest >> field;
  return std::stoull(field);
}

struct LiveProcess {
  TemporaryDirectory directory;
  std::string path = directory / "x.cad";
  format::Header header{};
  void* mapping = MAP_FAILED;

  LiveProcess() {
    ProfileBuilder builder;
    builder.WriteTo(path);
    struct stat own;
    REQUIRE(stat("/proc/self/ns/pid", &own) == 0);
    header = builder.header();
    header.outcome = {};
    header.pid = getpid();
    header.pid_namespace = own.st_ino;
    header.process_start_ticks = StartTicks(getpid());
  }
  void Map() {
    int descriptor = open(path.c_str(), O_RDWR);
    mapping = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, descriptor, 0);
    close(descriptor);
    REQUIRE(mapping != MAP_FAILED);
  }
  void Unmap() {
    if (mapping != MAP_FAILED) munmap(mapping, 4096);
    mapping = MAP_FAILED;
  }
  ~LiveProcess() { Unmap(); }
};

TEST_CASE("A process that maps the file is running, one that does not has become another program", "[end_state]") {
  LiveProcess live;
  CHECK(DecideEnd(live.header, live.path).end == EndState::kExec);
  live.Map();
  CHECK(DecideEnd(live.header, live.path).end == EndState::kRunning);
  live.header.outcome.end = format::kEndExit;  // exit handlers ran, and the process is on its way out
  CHECK(DecideEnd(live.header, live.path).end == EndState::kRunning);
}

TEST_CASE("The same pid with another start time or in another namespace is somebody else", "[end_state]") {
  LiveProcess live;
  live.Map();
  live.header.process_start_ticks++;
  CHECK(DecideEnd(live.header, live.path).end == EndState::kLost);
  live.header.process_start_ticks--;
  // In another namespace the process table knows nobody; the file itself says whether somebody writes it.
  live.header.pid_namespace++;
  const bool is_seen = FileUseOf(live.path) == FileUse::kWritten;  // not on a file system without leases
  CHECK(DecideEnd(live.header, live.path).end == (is_seen ? EndState::kRunning : EndState::kLost));
  live.Unmap();
  CHECK(DecideEnd(live.header, live.path).end == EndState::kLost);
  live.header.outcome.end = format::kEndExit;
  CHECK(DecideEnd(live.header, live.path).end == EndState::kExit);
  CHECK_FALSE(DecideEnd(live.header, live.path).status_known);
}

TEST_CASE("A dead process with a later profile beside this one had become another program", "[end_state]") {
  LiveProcess live;
  live.header.process_start_ticks++;  // nobody's any more
  live.header.start_monotonic_ns = 1000;
  auto beside = [&](const char* name, uint64_t start_monotonic_ns, uint64_t more_ticks, bool snapshot) {
    ProfileBuilder builder;
    builder.header().pid = live.header.pid;
    builder.header().pid_namespace = live.header.pid_namespace;
    builder.header().process_start_ticks = live.header.process_start_ticks + more_ticks;
    builder.header().start_monotonic_ns = start_monotonic_ns;
    builder.header().is_snapshot = snapshot;
    builder.WriteTo(live.directory / name);
  };
  const std::string pid = "-" + std::to_string(getpid()) + "-";
  beside(("cadastre-h-sh" + pid + "1.cad").c_str(), 999, 0, false);      // the image before this one
  beside(("cadastre-h-other" + pid + "1.cad").c_str(), 1001, 1, false);  // the pid again, somebody else
  beside(("cadastre-h-java" + pid + "2.cad").c_str(), 1001, 0, true);    // not a process
  std::ofstream(live.directory / ("cadastre-h-text" + pid + "1.cad")) << "no profile";
  CHECK(DecideEnd(live.header, live.path).end == EndState::kLost);
  beside(("cadastre-h-java" + pid + "1.cad").c_str(), 1001, 0, false);
  CHECK(DecideEnd(live.header, live.path).end == EndState::kExec);
  live.header.outcome.end = format::kEndExit;
  CHECK(DecideEnd(live.header, live.path).end == EndState::kExit);
}

TEST_CASE("A zombie is not running", "[end_state]") {
  LiveProcess live;
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  live.header.pid = child;
  live.header.process_start_ticks = StartTicks(child);
  kill(child, SIGKILL);
  siginfo_t info;
  REQUIRE(waitid(P_PID, child, &info, WEXITED | WNOWAIT) == 0);
  CHECK(DecideEnd(live.header, live.path).end == EndState::kLost);
  waitpid(child, nullptr, 0);
  CHECK(DecideEnd(live.header, live.path).end == EndState::kLost);
}

TEST_CASE("A process whose main thread has ended still runs", "[end_state]") {
  LiveProcess live;
  live.Map();
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  pid_t child = fork();
  if (child == 0) {
    static int ready_end;
    ready_end = ready[1];
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          char state = 0;
          while (state != 'Z') {  // until the main thread has ended
            std::ifstream file("/proc/self/stat");
            std::string line;
            std::getline(file, line);
            state = line[line.rfind(')') + 2];
            sched_yield();
          }
          (void)!write(ready_end, "x", 1);
          pause();
          return nullptr;
        },
        nullptr);
    syscall(SYS_exit, 0);  // this thread alone; pthread_exit would unwind through the test framework
  }
  close(ready[1]);
  char byte;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  live.header.pid = child;
  live.header.process_start_ticks = StartTicks(child);
  CHECK(DecideEnd(live.header, live.path).end == EndState::kRunning);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
}

TEST_CASE("What a parent saw counts first", "[end_state]") {
  LiveProcess live;
  live.Map();
  live.header.outcome = {format::kEndStatus, 3};
  EndDecision decision = DecideEnd(live.header, live.path);
  CHECK(decision.end == EndState::kExit);
  CHECK(decision.value == 3);
  CHECK(decision.status_known);
  live.header.outcome = {format::kEndSignal, SIGKILL};
  CHECK(DecideEnd(live.header, live.path).end == EndState::kSignal);
  CHECK(DecideEnd(live.header, live.path).value == SIGKILL);
  live.header.outcome = {format::kEndExec, 0};
  CHECK(DecideEnd(live.header, live.path).end == EndState::kExec);
}

TEST_CASE("Of a process that could not look at itself, the use of its file tells that it is running", "[end_state]") {
  LiveProcess live;
  live.header.process_start_ticks = live.header.pid_namespace = 0;  // it had no /proc
  const FileUse idle = FileUseOf(live.path);
  if (idle == FileUse::kUnknown) {
    WARN("skipped: leases do not work here");
    return;
  }
  CHECK(DecideEnd(live.header, live.path).end == EndState::kLost);
  const int descriptor = open(live.path.c_str(), O_RDWR);
  void* written = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  REQUIRE(written != MAP_FAILED);
  CHECK(DecideEnd(live.header, live.path).end == EndState::kRunning);
  munmap(written, 4096);
}

TEST_CASE("In a snapshot the process was running, unless the snapshot knows better", "[end_state]") {
  ProfileBuilder builder;
  format::Header& header = builder.header();
  header.outcome = {};
  header.is_snapshot = 1;
  CHECK(DecideEnd(header, "nowhere.cad").end == EndState::kRunning);
  header.outcome.end = format::kEndExit;
  CHECK(DecideEnd(header, "nowhere.cad").end == EndState::kExit);
}

TEST_CASE("Duration reaches to the end, to the snapshot, or to the newest sample", "[end_state]") {
  ProfileBuilder builder;
  format::Header& header = builder.header();
  CHECK(DurationNs(header, EndState::kExit) == 100'000'000'000);
  header.is_snapshot = 1;
  header.snapshot_end_realtime_ns = header.start_realtime_ns + 200'000'000'000;
  CHECK(DurationNs(header, EndState::kRunning) == 200'000'000'000);
  header = ProfileBuilder().header();
  header.outcome = {};
  CHECK(DurationNs(header, EndState::kLost) == header.last_sample_ns);
  header.outcome.end_realtime_ns = 1;  // before the start: a clock was set
  CHECK(DurationNs(header, EndState::kExit) == header.last_sample_ns);
}

}  // namespace
}  // namespace cadastre
