// A profile is live state that the kernel keeps: SIGKILL at any moment loses nothing. Exists because that is only true
// if every record is whole or recognisably torn after every instruction, and 50 random moments in 8 busy threads hit
// the unlucky ones.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "symbolizer/profile.h"
#include "tests/preload/sigkill_log.h"
#include "tests/support/catch.h"
#include "tests/support/target_process.h"

namespace cadastre {
namespace {

using testing::ProfileOf;
using testing::RunForOutput;
using testing::ScratchDirectory;
using testing::StartRecorded;
using testing::WaitFor;

struct Held {
  int64_t bytes = 0, blocks = 0;
};

// Starts the target, waits until all its threads are under way, kills it after `delay_us`. Returns its pid.
pid_t RunAndKill(const ScratchDirectory& scratch, const std::string& log_path, int64_t delay_us) {
  int ready[2];
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
  pid_t pid = StartRecorded({SIGKILL_TARGET, log_path}, "interval=1", scratch.path(), ready[1]);
  close(ready[1]);
  REQUIRE(pid > 0);
  char byte;
  for (int i = 0; i < kLogThreads; i++) REQUIRE(read(ready[0], &byte, 1) == 1);
  // Not a wait for something: the random moment itself.
  timespec delay = {.tv_sec = 0, .tv_nsec = delay_us * 1000};
  nanosleep(&delay, nullptr);
  REQUIRE(kill(pid, SIGKILL) == 0);
  close(ready[0]);
  REQUIRE(WaitFor(pid) == 128 + SIGKILL);
  return pid;
}

TEST_CASE(
    "After SIGKILL at 50 random moments the live total is within one record per thread of what the program logged") {
  std::mt19937_64 random(20260101);
  uint64_t steps_in_all = 0;
  for (int round = 0; round < 50; round++) {
    ScratchDirectory scratch("sigkill");
    std::string log_path = scratch.path() + "/log";
    int log_file = open(log_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(log_file >= 0);
    REQUIRE(ftruncate(log_file, kLogThreads * sizeof(ThreadLog)) == 0);
    auto* logs = static_cast<const ThreadLog*>(
        mmap(nullptr, kLogThreads * sizeof(ThreadLog), PROT_READ, MAP_SHARED, log_file, 0));
    close(log_file);
    REQUIRE(logs != MAP_FAILED);

    int64_t delay_us = random() % 40000;
    pid_t pid = RunAndKill(scratch, log_path, delay_us);
    std::string path = ProfileOf(scratch.path(), pid);
    INFO("round " << round << ", killed after " << delay_us << " us, " << path);
    absl::StatusOr<Profile> profile = ReadProfile(path);
    INFO(profile.status().ToString());
    REQUIRE(profile.ok());
    REQUIRE(profile->losses.dropped_samples == 0);

    std::map<uint64_t, Held> by_tid;
    Held total;
    for (const LiveSample& sample : profile->live) {
      Held& held = by_tid[profile->threads[sample.thread].tid];
      held.bytes += sample.weight_bytes;
      held.blocks++;
      total.bytes += sample.weight_bytes;
      total.blocks++;
    }
    int64_t logged_allocations = 0, logged_bytes = 0;
    for (int i = 0; i < kLogThreads; i++) {
      const ThreadLog& log = logs[i];
      const Held& held = by_tid[log.tid];
      INFO("thread " << log.tid << " after " << log.steps << " steps");
      CHECK(std::abs(held.blocks - static_cast<int64_t>(log.live_blocks)) <= 1);
      CHECK(std::abs(held.bytes - static_cast<int64_t>(log.live_bytes)) <= kLogLargestBlock);
      logged_allocations += log.allocated_blocks;
      logged_bytes += log.allocated_bytes;
      steps_in_all += log.steps;
    }

    // The volume too, pending deltas and half-applied ones included. The main thread's own allocations (8
    // pthread_create) are few: they are what is live in no logged thread.
    Held others = total;
    for (int i = 0; i < kLogThreads; i++) {
      others.bytes -= by_tid[logs[i].tid].bytes;
      others.blocks -= by_tid[logs[i].tid].blocks;
    }
    double allocations = 0;
    int64_t bytes = 0;
    for (const Site& site : profile->sites) {
      allocations += site.allocated_count;
      bytes += site.allocated_bytes;
    }
    CHECK(std::abs(allocations - others.blocks - logged_allocations) <= static_cast<double>(kLogThreads));
    CHECK(std::abs(bytes - others.bytes - logged_bytes) <= kLogThreads * kLogLargestBlock);

    std::string output;
    REQUIRE(RunForOutput({CADASTRE_COMMAND, "report", path, "--format", "json"}, &output) == 0);
    nlohmann::json report = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
    REQUIRE(report.is_object());
    CHECK(report["totals"]["live_bytes"] == total.bytes);
    CHECK(report["totals"]["live_count"] == total.blocks);
    munmap(const_cast<ThreadLog*>(logs), kLogThreads * sizeof(ThreadLog));
  }
  printf("50 kills, %lu steps\n", steps_in_all);
}

}  // namespace
}  // namespace cadastre
