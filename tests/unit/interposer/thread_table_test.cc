// Why: a thread record that is used again too early gives a live sample the name and the creator of another thread; one
// that is never used again fills the table of a program that starts a thread for each request. Also under
// ThreadSanitizer.
#include "interposer/thread_table.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "interposer/profile_file.h"
#include "tests/support/catch.h"
#include "tests/unit/interposer/test_profile.h"

namespace cadastre {
namespace {

constexpr uint32_t kSite = 7, kOtherSite = 8;
const StackBounds kBlock = {0x1000, 0x9000};

void Open() {
  static const bool opened = [] {
    OpenTestProfile();
    REQUIRE(ThreadTableInit(g_profile.thread_capacity));
    return true;
  }();
  REQUIRE(opened);
}

// What pthread_create and the thread do, one after the other. Returns the record.
uint32_t RunThread(ThreadState* creator, bool samples, uint32_t site = kSite) {
  const uint32_t index = ThreadRecordPrepare(*creator, site, 5);
  REQUIRE(index != 0);
  CHECK(g_profile.threads[index].state == format::kWriting);
  std::thread([&] {
    ThreadState state{};
    ThreadRecordStart(&state, index, kBlock);
    if (samples) ThreadRecordKeep(&state, 6);
  }).join();
  return index;
}

TEST_CASE("A record says who created the thread, who had created the creator, and where the stack lies") {
  Open();
  ThreadState main{};
  ThreadRecordKeep(&main, 1);
  REQUIRE(main.thread != 0);
  CHECK(g_profile.threads[main.thread].creation_site == 0);
  const uint32_t index = ThreadRecordPrepare(main, kSite, 2);
  uint32_t inner = 0;
  std::thread([&] {
    ThreadState state{};
    ThreadRecordStart(&state, index, kBlock);
    inner = RunThread(&state, true, kOtherSite);
  }).join();
  const format::ThreadRecord& record = g_profile.threads[index];
  CHECK(record.state == format::kReady);
  CHECK(record.tid != 0);
  CHECK(record.creation_site == kSite);
  CHECK(record.creator_creation_site == 0);
  CHECK(record.stack_low == kBlock.low);
  CHECK(record.stack_high == kBlock.high);
  CHECK(g_profile.threads[inner].creation_site == kOtherSite);
  CHECK(g_profile.threads[inner].creator_creation_site == kSite);
}

TEST_CASE("Records of ended threads are used again unless a sample names them") {
  Open();
  ThreadState main{};
  std::set<uint32_t> silent, kept;
  const int few = static_cast<int>(g_profile.thread_capacity / 16);  // so many are new ones
  for (int i = 0; i < few + 300; i++) silent.insert(RunThread(&main, false));
  CHECK(silent.size() < static_cast<size_t>(few) + 60);
  for (int i = 0; i < 100; i++) kept.insert(RunThread(&main, true));
  CHECK(kept.size() == 100);
  for (int i = 0; i < 300; i++) CHECK(kept.count(RunThread(&main, false)) == 0);
}

TEST_CASE("A record that is given back is used again") {
  Open();
  ThreadState main{};
  std::set<uint32_t> seen;
  for (int i = 0; i < 2000; i++) {
    const uint32_t index = ThreadRecordPrepare(main, kSite, 1);
    seen.insert(index);
    ThreadRecordGiveBack(index);
    CHECK(g_profile.threads[index].state == format::kFree);
  }
  CHECK(seen.count(0) == 0);
  CHECK(seen.size() < g_profile.thread_capacity / 2);  // 165 or so before it, and a few
}

TEST_CASE("What has ended is marked when it is asked for") {
  Open();
  ThreadState main{};
  ThreadRecordKeep(&main, 1);
  const uint32_t index = RunThread(&main, true);
  // The kernel may take a moment to forget a thread that was joined.
  for (int i = 0; i < 1000 && (g_profile.threads[index].flags & format::kThreadEnded) == 0; i++) {
    ThreadTableMarkEnded();
    std::this_thread::yield();
  }
  CHECK(g_profile.threads[index].flags == format::kThreadEnded);
  CHECK(g_profile.threads[main.thread].flags == 0);
}

TEST_CASE("No two living threads share a record") {
  Open();
  constexpr int kCreators = 4, kRounds = 200;
  std::mutex mutex;
  std::set<uint32_t> living;
  std::atomic<int> shared{0};
  std::vector<std::thread> creators;
  for (int c = 0; c < kCreators; c++) {
    creators.emplace_back([&] {
      ThreadState creator{};
      for (int i = 0; i < kRounds; i++) {
        const uint32_t index = ThreadRecordPrepare(creator, kSite, 1);
        {
          std::lock_guard<std::mutex> lock(mutex);
          if (index == 0 || !living.insert(index).second) shared++;
        }
        std::thread([&] {
          ThreadState state{};
          ThreadRecordStart(&state, index, kBlock);
          std::lock_guard<std::mutex> lock(mutex);
          living.erase(index);
        }).join();
      }
    });
  }
  for (auto& creator : creators) creator.join();
  CHECK(shared == 0);
}

// Last: it leaves no room for other threads.
TEST_CASE("A full table is counted, and the thread has no record") {
  Open();
  ThreadState main{};
  const uint64_t before = g_profile.header->counters.threads_full;
  // A look may pass by a record that is free, so that more than one thread goes without before all are taken.
  uint32_t without = 0;
  for (uint32_t i = 0; i <= g_profile.thread_capacity * 4; i++)
    without += ThreadRecordPrepare(main, kSite, 1) == 0 ? 1 : 0;
  CHECK(without > g_profile.thread_capacity);
  CHECK(g_profile.header->counters.threads_full == before + without);
  ThreadState late{};
  ThreadRecordKeep(&late, 1);
  ThreadRecordKeep(&late, 1);
  CHECK(late.thread == 0);
  CHECK(g_profile.header->counters.threads_full == before + without + 1);  // once a thread
}

}  // namespace
}  // namespace cadastre
