// Why: the live table decides what is "not freed yet". It is checked against a plain map, at its limits, and by many
// threads at once (also under ThreadSanitizer), with readers looking at the slots meanwhile.
#include "interposer/live_table.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "interposer/free_filter.h"
#include "interposer/profile_file.h"
#include "interposer/site_table.h"
#include "interposer/thread_buffer.h"
#include "tests/support/catch.h"
#include "tests/unit/interposer/test_profile.h"

namespace cadastre {
namespace {

// ThreadSanitizer makes every access some 20 times slower; races show in a fraction of the steps.
#if defined(__SANITIZE_THREAD__)
constexpr int kScale = 20;
#else
constexpr int kScale = 1;
#endif

constexpr uint32_t kShard = 3, kOtherShard = 4;

LiveSampleData Sample(uint64_t address, uint64_t size) { return {address, size, size * 2, 1, 2, 3}; }

// First: what later cases touch is there already.
TEST_CASE("The first samples of a process touch few pages, however far apart the blocks lie") {
  OpenTestProfile();
  constexpr uint64_t kSamples = 200, kApart = (5 << 20) + 48;
  const auto address = [](uint64_t i) { return 0x7e0000000000 + i * kApart; };
  rusage before, after;
  getrusage(RUSAGE_SELF, &before);
  for (uint64_t i = 0; i < kSamples; i++) {
    bool had_old;
    LiveSampleData old;
    REQUIRE(LiveInsert(Sample(address(i), i), kShard, &had_old, &old));
  }
  getrusage(RUSAGE_SELF, &after);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // Where every block is recorded each one so far from the others has a page of words, or of the larger filter.
  const uint64_t most = kTestInterval > 1 ? kSamples / 4 : kSamples * 2;
  CHECK(static_cast<uint64_t>(after.ru_minflt - before.ru_minflt) < most);
#endif
  LiveSampleData removed;
  for (uint64_t i = 0; i < kSamples; i++) REQUIRE(LiveRemove(address(i), kShard, &removed));
}

TEST_CASE("The table agrees with a map over many random inserts and removes") {
  OpenTestProfile();
  std::map<uint64_t, uint64_t> truth;
  std::vector<uint64_t> addresses;
  std::mt19937_64 random(1);
  for (int step = 0; step < 1000000 / kScale; step++) {
    if (addresses.empty() || (random() % 3 != 0 && addresses.size() < 60000)) {
      uint64_t address = 0x7f0000000000 + (random() % 1000000) * 16;
      if (truth.count(address) != 0) continue;
      bool had_old;
      LiveSampleData old;
      REQUIRE(LiveInsert(Sample(address, step), static_cast<uint32_t>(step), &had_old, &old));
      REQUIRE_FALSE(had_old);
      truth[address] = static_cast<uint64_t>(step);
      addresses.push_back(address);
    } else {
      size_t pick = random() % addresses.size();
      uint64_t address = addresses[pick];
      addresses[pick] = addresses.back();
      addresses.pop_back();
      REQUIRE(FilterMayContain(reinterpret_cast<void*>(address)));
      LiveSampleData removed;
      REQUIRE(LiveRemove(address, static_cast<uint32_t>(step), &removed));
      REQUIRE(removed.size == truth[address]);
      truth.erase(address);
      REQUIRE_FALSE(LiveRemove(address, kShard, &removed));
    }
  }
  REQUIRE(LiveCount() == truth.size());
  for (uint64_t address : addresses) {
    LiveSampleData removed;
    REQUIRE(LiveRemove(address, kShard, &removed));
  }
  REQUIRE(LiveCount() == 0);
  // Counters that never stuck are back at zero.
  for (uint8_t counter : g_free_filter) REQUIRE((counter == 0 || counter == 255));
}

TEST_CASE("A second block at a recorded address replaces the first and says so") {
  OpenTestProfile();
  bool had_old;
  LiveSampleData old;
  REQUIRE(LiveInsert(Sample(0x1000, 5), kShard, &had_old, &old));
  REQUIRE(LiveInsert(Sample(0x1000, 6), kShard, &had_old, &old));
  REQUIRE(had_old);
  REQUIRE(old.size == 5);
  LiveSampleData removed;
  REQUIRE(LiveRemove(0x1000, kShard, &removed));
  REQUIRE(removed.size == 6);
  REQUIRE_FALSE(LiveRemove(0x1000, kShard, &removed));
}

TEST_CASE("A full table refuses, and has room again after a remove") {
  OpenTestProfile();
  uint32_t inserted = 0;
  bool had_old;
  LiveSampleData old;
  const uint64_t base = 0x500000000000;
  while (LiveInsert(Sample(base + inserted * 32ull, 1), kShard, &had_old, &old)) inserted++;
  REQUIRE(inserted > g_profile.live_capacity * 9 / 10);
  LiveSampleData removed;
  REQUIRE(LiveRemove(base, kOtherShard, &removed));
  REQUIRE(LiveInsert(Sample(base, 1), kShard, &had_old, &old));
  for (uint32_t i = 0; i < inserted; i++) REQUIRE(LiveRemove(base + i * 32ull, kShard, &removed));
  REQUIRE(LiveCount() == 0);
}

TEST_CASE("Blocks at any regular distance from each other find room, and are found") {
  OpenTestProfile();
  for (int shift = 4; shift < 32; shift++) {
    const uint32_t count = 20000 / kScale;
    for (uint32_t i = 1; i <= count; i++) {
      bool had_old;
      LiveSampleData old;
      REQUIRE(LiveInsert(Sample((static_cast<uint64_t>(i) << shift) + 16, i), kShard, &had_old, &old));
      REQUIRE_FALSE(had_old);
    }
    for (uint32_t i = 1; i <= count; i++) {
      LiveSampleData removed;
      REQUIRE(LiveRemove((static_cast<uint64_t>(i) << shift) + 16, kShard, &removed));
      REQUIRE(removed.size == i);
    }
  }
  REQUIRE(LiveCount() == 0);
}

TEST_CASE("Threads that hand blocks to each other lose none and find none twice") {
  OpenTestProfile();
  constexpr int kThreads = 4, kBlocks = 20000 / kScale;
  std::vector<std::atomic<uint64_t>> mailbox(64);
  std::atomic<uint64_t> inserted{0}, removed_count{0}, failures{0};
  auto remove = [&](uint64_t address, uint32_t shard) {
    LiveSampleData removed;
    if (!LiveRemove(address, shard, &removed) || removed.address != address) failures++;
    removed_count++;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (uint64_t i = 0; i < kBlocks; i++) {
        uint64_t address = (static_cast<uint64_t>(t + 1) << 40) + i * 16;
        bool had_old;
        LiveSampleData old;
        if (!LiveInsert(Sample(address, i), static_cast<uint32_t>(t), &had_old, &old) || had_old) failures++;
        inserted++;
        uint64_t other = mailbox[random() % mailbox.size()].exchange(address);
        if (other != 0) remove(other, static_cast<uint32_t>(t));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (auto& box : mailbox) {
    if (uint64_t address = box.exchange(0)) remove(address, kShard);
  }
  REQUIRE(failures == 0);
  REQUIRE(inserted == removed_count);
  REQUIRE(LiveCount() == 0);
}

// What the handler below works on, and what went wrong in it.
constexpr uint64_t kHandlerBase = 0x7f0000000000;
std::atomic<uint64_t> handler_runs{0}, handler_failures{0};

void InsertAndRemove(int) {
  constexpr int kBlocks = 3;
  bool had_old;
  LiveSampleData old;
  for (uint64_t i = 0; i < kBlocks; i++) {
    if (!LiveInsert(Sample(kHandlerBase + i * 16, i), kTestOwners, &had_old, &old) || had_old) handler_failures++;
  }
  for (uint64_t i = 0; i < kBlocks; i++) {
    LiveSampleData removed;
    if (!LiveRemove(kHandlerBase + i * 16, kTestOwners, &removed) || removed.address != kHandlerBase + i * 16)
      handler_failures++;
  }
  handler_runs++;
}

TEST_CASE("A signal handler in the middle of an insert or a remove of its thread gets slots of its own") {
  OpenTestProfile();
  struct sigaction action = {}, before;
  action.sa_handler = InsertAndRemove;
  REQUIRE(sigaction(SIGALRM, &action, &before) == 0);
  const itimerval often = {{0, 50}, {0, 50}}, never = {};
  REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  const uint64_t base = 0x7e0000000000;
  uint64_t failures = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t step = 0; std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(500); step++) {
    const uint64_t blocks = step % 4;
    for (uint64_t i = 0; i < blocks; i++) {
      bool had_old;
      LiveSampleData old;
      if (!LiveInsert(Sample(base + i * 16, i), kTestOwners, &had_old, &old) || had_old) failures++;
    }
    for (uint64_t i = 0; i < blocks; i++) {
      LiveSampleData removed;
      if (!LiveRemove(base + i * 16, kTestOwners, &removed) || removed.address != base + i * 16) failures++;
    }
  }
  REQUIRE(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  REQUIRE(sigaction(SIGALRM, &before, nullptr) == 0);
  CHECK(handler_runs > 0);
  CHECK(failures == 0);
  CHECK(handler_failures == 0);
  CHECK(LiveCount() == 0);
}

TEST_CASE("Threads that bring the same stacks get the same sites") {
  OpenTestProfile();
  constexpr int kThreads = 4, kStacks = 2000;
  std::vector<std::vector<uint32_t>> sites(kThreads, std::vector<uint32_t>(kStacks));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kStacks; i++) {
        uint64_t frames[3] = {1000ull + i, 5, 6};
        sites[t][i] = SiteIntern(frames, 3, format::kSiteMalloc, 0);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::set<uint32_t> distinct(sites[0].begin(), sites[0].end());
  REQUIRE(distinct.size() == kStacks);
  REQUIRE(distinct.count(format::kSiteOverflow) == 0);
  for (int t = 1; t < kThreads; t++) REQUIRE(sites[t] == sites[0]);
}

TEST_CASE("The peak of each site is what it held when the process was at its peak") {
  OpenTestProfile();
  uint64_t f1[1] = {0x9001}, f2[1] = {0x9002};
  const uint32_t a = SiteIntern(f1, 1, format::kSiteMalloc, 0), b = SiteIntern(f2, 1, format::kSiteMalloc, 0);
  auto at_peak = [](uint32_t site) {
    const format::SiteRecord& record = g_profile.sites[site];
    return record.peak_epoch == g_profile.header->peak_epoch ? record.live_at_peak_bytes : record.live_bytes;
  };
  const uint64_t base = g_profile.header->peak_total_bytes;  // other tests' peaks stay below
  SiteLiveAdded(a, base + 100, 1);
  SiteLiveAdded(b, 50, 2);  // the peak
  SiteLiveRemoved(a, 60);
  SiteLiveAdded(b, 20, 3);
  REQUIRE(g_profile.header->peak_total_bytes == base + 150);
  CHECK(at_peak(a) == static_cast<int64_t>(base) + 100);
  CHECK(at_peak(b) == 50);
  CHECK(g_profile.sites[b].own_peak_bytes == 70);
}

TEST_CASE("What threads put into their buffers arrives at the sites, each delta once") {
  OpenTestProfile();
  uint64_t frames[1] = {0xabc}, other_frames[1] = {0xabd};
  const uint32_t site = SiteIntern(frames, 1, format::kSiteMalloc, 0);
  const uint32_t other = SiteIntern(other_frames, 1, format::kSiteMalloc, 0);
  constexpr int kThreads = 4, kSamples = 10000 / kScale;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) {
    threads.emplace_back([&] {
      ThreadState state{};
      BufferPrepare(&state);
      for (int i = 0; i < kSamples; i++) {
        BufferAppend(&state, {site, 1, 65536, 10, 2.5});
        if (i % 3 != 0) BufferAppend(&state, {other, 1, 65536, 7, 0});
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const format::SiteRecord& record = g_profile.sites[site];
  uint64_t samples = record.samples, bytes = record.allocated_bytes, count = record.count_fixed;
  double variance = record.allocated_variance;
  for (uint32_t i = 0; i < g_profile.buffer_capacity; i++) {
    const format::BufferRecord& buffer = g_profile.buffers[i];
    if (!ProfileEnsure(&buffer, sizeof(buffer)) || buffer.state != format::kReady) break;
    for (uint32_t at = buffer.tail; at != buffer.head; at++) {
      const format::Delta& delta = buffer.deltas[at % format::kBufferDeltas];
      if (delta.site != site) continue;
      samples += delta.samples;
      bytes += delta.bytes;
      count += delta.count_fixed;
      variance += delta.variance;
    }
  }
  CHECK(samples == kThreads * kSamples);
  CHECK(bytes == kThreads * kSamples * 10);
  CHECK(count == kThreads * kSamples * 65536ull);
  CHECK(variance == 2.5 * kThreads * kSamples);
}

TEST_CASE("Buffers of dead threads are used again") {
  OpenTestProfile();
  std::set<uint32_t> used;
  for (int i = 0; i < 200; i++) {
    std::thread([&] {
      ThreadState state{};
      BufferPrepare(&state);
      used.insert(state.buffer);
    }).join();
  }
  REQUIRE(used.count(0) == 0);
  REQUIRE(used.size() < 60);
}

// Last: it leaves no room for other stacks.
TEST_CASE("Site tables that are full charge the overflow site and count it") {
  OpenTestProfile();
  uint64_t before = g_profile.header->counters.sites_overflowed;
  uint32_t last = 0;
  for (uint64_t i = 0; i < 2ull * g_profile.site_capacity; i++) {
    uint64_t frames[1] = {0x77000000 + i};
    last = SiteIntern(frames, 1, format::kSiteMalloc, 0);
  }
  REQUIRE(last == format::kSiteOverflow);
  REQUIRE(g_profile.header->counters.sites_overflowed > before);
}

}  // namespace
}  // namespace cadastre
