// A snapshot is taken while the target writes: what is copied must be whole, and what was there throughout must not be
// missing.
#include "report/profile_copy.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "report/live_file.h"
#include "report/snapshot_label.h"
#include "symbolizer/profile.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

class Folder : public testing::TemporaryDirectory {
 public:
  size_t Files() const {
    return std::distance(std::filesystem::directory_iterator(path()), std::filesystem::directory_iterator{});
  }
};

testing::ProfileBuilder SmallProfile(uint32_t live) {
  testing::ProfileBuilder builder;
  builder.set_spare_pages(64);
  uint32_t library = builder.AddLibrary("/opt/app/libbilling.so");
  uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1000)});
  for (uint32_t i = 0; i < live; i++) builder.AddSample(site, 0x7f0000000000 + 64 * i, 64, 1024 + i);
  return builder;
}

TEST_CASE("A copy says what the original says, and that it is a snapshot", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad", copy = folder / "a.cad@before";
  REQUIRE(SmallProfile(1000).WriteTo(live));
  REQUIRE(CopyProfile(live, copy, {.label = "before"}).ok());
  auto original = ReadProfile(live), snapshot = ReadProfile(copy);
  REQUIRE(original.ok());
  REQUIRE(snapshot.ok());
  CHECK(snapshot->is_snapshot);
  CHECK(snapshot->label == "before");
  CHECK(snapshot->snapshot_end_realtime_ns >= snapshot->snapshot_begin_realtime_ns);
  CHECK(snapshot->snapshot_begin_realtime_ns > 0);
  REQUIRE(snapshot->live.size() == original->live.size());
  for (size_t i = 0; i < snapshot->live.size(); i++)
    CHECK(snapshot->live[i].weight_bytes == original->live[i].weight_bytes);
  struct stat status;
  REQUIRE(stat(copy.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  CHECK(folder.Files() == 2);
}

TEST_CASE("A final copy stays the profile that it was", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad", copy = folder / "b.cad";
  REQUIRE(SmallProfile(10).WriteTo(live));
  REQUIRE(CopyProfile(live, copy, {.is_snapshot = false}).ok());
  auto profile = ReadProfile(copy);
  REQUIRE(profile.ok());
  CHECK_FALSE(profile->is_snapshot);
  CHECK(profile->end == EndState::kExit);
}

TEST_CASE("A snapshot of a snapshot is of the same moment", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad", first = folder / "a.cad@a", second = folder / "a.cad@b";
  testing::ProfileBuilder builder = SmallProfile(10);
  builder.header().outcome = {};
  REQUIRE(builder.WriteTo(live));
  REQUIRE(CopyProfile(live, first, {.label = "a"}).ok());
  usleep(20000);
  REQUIRE(CopyProfile(first, second, {.label = "b"}).ok());
  auto before = ReadProfile(first), after = ReadProfile(second);
  REQUIRE(before.ok());
  REQUIRE(after.ok());
  CHECK(after->label == "b");
  CHECK(after->snapshot_begin_realtime_ns == before->snapshot_begin_realtime_ns);
  CHECK(after->snapshot_end_realtime_ns == before->snapshot_end_realtime_ns);
  CHECK(after->duration_ns == before->duration_ns);
}

TEST_CASE("A copy is as long as what is used, and its holes are not filled", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad", copy = folder / "b.cad";
  testing::ProfileBuilder builder = SmallProfile(1000);
  builder.set_spare_pages(4096);  // 16 MiB for each region
  REQUIRE(builder.WriteTo(live));
  REQUIRE(std::filesystem::file_size(live) > (64 << 20));
  REQUIRE(CopyProfile(live, copy, {.label = "x"}).ok());
  CHECK(std::filesystem::file_size(copy) < (1 << 20));
  struct stat status;
  REQUIRE(stat(copy.c_str(), &status) == 0);
  CHECK(status.st_blocks * 512 < (1 << 20));
  auto original = ReadProfile(live), packed = ReadProfile(copy);
  REQUIRE(packed.ok());
  CHECK(packed->incomplete == "");
  CHECK(packed->warnings == original->warnings);
  CHECK(packed->memory_bytes == original->memory_bytes);
  REQUIRE(packed->live.size() == 1000);
  CHECK(packed->live[999].address == original->live[999].address);
  REQUIRE(packed->sites.size() == original->sites.size());
  CHECK(packed->sites[0].frames == original->sites[0].frames);
  CHECK(packed->libraries.at(1).path == original->libraries.at(1).path);
  // A copy of a copy changes nothing more.
  REQUIRE(CopyProfile(copy, folder / "c.cad", {.is_snapshot = false}).ok());
  CHECK(std::filesystem::file_size(folder / "c.cad") <= std::filesystem::file_size(copy));
}

TEST_CASE("A packed copy is copied block by block, and its header still says whose it is", "[profile_copy]") {
  Folder folder;
  const std::string live = folder / "a.cad", packed = folder / "b.cad", again = folder / "b.cad@later";
  REQUIRE(SmallProfile(1000).WriteTo(live));
  REQUIRE(CopyProfile(live, packed, {.is_snapshot = false, .saved = true}).ok());
  REQUIRE(CopyProfile(packed, again, {.label = "later"}).ok());
  CHECK(std::filesystem::file_size(again) == std::filesystem::file_size(packed));
  CHECK(std::filesystem::file_size(packed) < 16 << 10);
  auto profile = ReadProfile(again);
  REQUIRE(profile.ok());
  CHECK(profile->version == format::kPackedVersion);
  CHECK(profile->label == "later");
  CHECK(profile->live.size() == 1000);
  ProfileIdentity identity;
  const int descriptor = open(packed.c_str(), O_RDONLY);
  REQUIRE(ReadIdentity(descriptor, &identity));
  close(descriptor);
  CHECK(identity.saved);
  CHECK(identity.exe == "/usr/bin/example");
  CHECK(identity.host == "testhost");
  // What steers a process is for live files.
  CHECK(WriteControl(packed, {.paused = true}).message().find("not a live profile") != std::string::npos);
  // Damage goes along, and is told of.
  std::filesystem::resize_file(packed, std::filesystem::file_size(packed) - 100);
  REQUIRE(CopyProfile(packed, again, {.label = "cut", .overwrite = true}).ok());
  CHECK(ReadProfile(again)->incomplete.find("the file is cut at ") == 0);
}

TEST_CASE("A file that is cut, or whose regions lie over each other, is copied as it is", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad", copy = folder / "b.cad";
  testing::ProfileBuilder builder = SmallProfile(100);
  REQUIRE(builder.WriteTo(live));
  std::filesystem::resize_file(live, std::filesystem::file_size(live) - 4096);
  REQUIRE(CopyProfile(live, copy, {.is_snapshot = false}).ok());
  CHECK(std::filesystem::file_size(live) == std::filesystem::file_size(copy));
  CHECK(ReadProfile(copy)->incomplete == ReadProfile(live)->incomplete);
  CHECK(ReadProfile(copy)->incomplete != "");
  REQUIRE(builder.WriteTo(live));
  const int descriptor = open(live.c_str(), O_RDWR);
  format::Header header;
  REQUIRE(pread(descriptor, &header, sizeof(header), 0) == sizeof(header));
  header.regions[format::kRegionSites].offset = header.regions[format::kRegionFrames].offset;
  REQUIRE(pwrite(descriptor, &header, sizeof(header), 0) == sizeof(header));
  close(descriptor);
  REQUIRE(CopyProfile(live, copy, {.is_snapshot = false, .overwrite = true}).ok());
  CHECK(std::filesystem::file_size(live) == std::filesystem::file_size(copy));
}

TEST_CASE("A taken name is refused, and nothing is left beside it", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad", copy = folder / "b.cad";
  REQUIRE(SmallProfile(10).WriteTo(live));
  REQUIRE(CopyProfile(live, copy, {.label = "x"}).ok());
  CHECK(CopyProfile(live, copy, {.label = "y"}).code() == absl::StatusCode::kAlreadyExists);
  CHECK(CopyProfile(live, copy, {.label = "z", .overwrite = true}).ok());
  CHECK(ReadProfile(copy)->label == "z");
  CHECK_FALSE(CopyProfile(live, folder / "no/such/b.cad", {.label = "x"}).ok());
  CHECK_FALSE(CopyProfile(folder / "none.cad", folder / "c.cad", {.label = "x"}).ok());
  CHECK(folder.Files() == 2);
}

TEST_CASE("What is no profile is not copied", "[profile_copy]") {
  Folder folder;
  std::string text = folder / "a.cad";
  FILE* file = fopen(text.c_str(), "w");
  for (int i = 0; i < 5000; i++) fputc('x', file);
  fclose(file);
  CHECK_FALSE(CopyProfile(text, folder / "b.cad", {.label = "x"}).ok());
  CHECK(folder.Files() == 1);
}

// A writer reuses half of the records as fast as it can, with the protocol of profile_format.h; the other half never
// changes. In every copy each record must be one that was written (weight = 2 * address of its generation) and the
// resting half complete.
TEST_CASE("A copy under a fast writer holds whole records only, and all that rest", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad";
  constexpr uint32_t kRecords = 2000;
  testing::ProfileBuilder builder = SmallProfile(kRecords);
  for (uint32_t i = 0; i < kRecords; i++) {
    builder.live(i).address = 4096 * (i + 1);
    builder.live(i).weight = 2 * builder.live(i).address;
  }
  REQUIRE(builder.WriteTo(live));
  int descriptor = open(live.c_str(), O_RDWR);
  REQUIRE(descriptor >= 0);
  format::Header header;
  REQUIRE(pread(descriptor, &header, sizeof(header), 0) == sizeof(header));
  char* file = static_cast<char*>(mmap(nullptr, header.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0));
  REQUIRE(file != MAP_FAILED);
  auto* records = reinterpret_cast<format::LiveRecord*>(file + header.regions[format::kRegionLive].offset);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint32_t generation = 1; !stop; generation++) {
      for (uint32_t i = 0; i < kRecords; i += 2) {
        format::LiveRecord& record = records[i];
        __atomic_store_n(&record.state, (generation << 2) | format::kFree, __ATOMIC_RELEASE);
        __atomic_store_n(&record.state, (generation << 2) | format::kWriting, __ATOMIC_RELEASE);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        uint64_t address = 4096ull * (i + 1) + 8 * (generation % 64);
        __atomic_store_n(&record.address, address, __ATOMIC_RELAXED);
        __atomic_store_n(&record.weight, 2 * address, __ATOMIC_RELAXED);
        __atomic_store_n(&record.state, (generation << 2) | format::kReady, __ATOMIC_RELEASE);
      }
    }
  });
  for (int round = 0; round < 50; round++) {
    std::string copy = folder / ("copy" + std::to_string(round));
    absl::Status copied = CopyProfile(live, copy, {.label = "x"});
    REQUIRE(copied.ok());
    auto profile = ReadProfile(copy);
    REQUIRE(profile.ok());
    size_t resting = 0;
    for (const LiveSample& sample : profile->live) {
      REQUIRE(sample.weight_bytes == 2 * sample.address);
      if (sample.address % 8192 == 0) resting++;
    }
    CHECK(resting == kRecords / 2);
  }
  stop = true;
  writer.join();
  munmap(file, header.file_bytes);
  close(descriptor);
}

TEST_CASE("Labels are names that cannot be mistaken", "[profile_copy]") {
  for (const char* good : {"before", "a", "10.20", "v2_final-3", "peaks", "every", "at"}) CHECK(CheckLabel(good).ok());
  for (const char* bad : {"", "a/b", "a b", "@", "last", "peak", "2h", "10m", "a\n", "every-1", "at-75"}) {
    INFO(bad);
    CHECK_FALSE(CheckLabel(bad).ok());
  }
  CHECK(CheckLabel(std::string(63, 'a')).ok());
  CHECK_FALSE(CheckLabel(std::string(64, 'a')).ok());
}

TEST_CASE("Control words and the outcome are written and nothing else", "[profile_copy]") {
  Folder folder;
  std::string live = folder / "a.cad";
  testing::ProfileBuilder builder = SmallProfile(10);
  builder.header().outcome = {};
  REQUIRE(builder.WriteTo(live));
  auto read = [&] {
    std::string bytes(std::filesystem::file_size(live), '\0');
    int descriptor = open(live.c_str(), O_RDONLY);
    REQUIRE(pread(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    close(descriptor);
    return bytes;
  };
  std::string before = read();
  REQUIRE(WriteControl(live, {.paused = true, .interval_bytes = 4096}).ok());
  int descriptor = open(live.c_str(), O_RDWR);
  REQUIRE(WriteOutcome(descriptor, {.wait_status = 9, .end_realtime_ns = 7, .peak_rss_bytes = 8}).ok());
  close(descriptor);
  std::string after = read();
  format::Header header;
  memcpy(&header, after.data(), sizeof(header));
  CHECK(header.control.paused == 1);
  CHECK(header.control.interval_bytes == 4096);
  CHECK(header.outcome.end == format::kEndSignal);
  CHECK(header.outcome.end_value == 9);
  CHECK(header.control_log.paused_since_realtime_ns > 0);
  CHECK(header.control_log.first_pause_realtime_ns == header.control_log.paused_since_realtime_ns);
  CHECK(header.control_log.interval_changes == 1);
  for (std::string* bytes : {&before, &after})
    memset(bytes->data() + offsetof(format::Header, control_log), 0, sizeof(format::ControlLog));
  memset(after.data() + offsetof(format::Header, control), 0, sizeof(format::Control) + sizeof(format::Outcome));
  memset(before.data() + offsetof(format::Header, control), 0, sizeof(format::Control) + sizeof(format::Outcome));
  CHECK(after == before);
  // Again changes nothing; a resume closes the pause.
  REQUIRE(WriteControl(live, {.paused = true}).ok());
  format::ControlLog log = header.control_log;
  memcpy(&header, read().data(), sizeof(header));
  CHECK(memcmp(&log, &header.control_log, sizeof(log)) == 0);
  REQUIRE(WriteControl(live, {.paused = false}).ok());
  memcpy(&header, read().data(), sizeof(header));
  CHECK(header.control.paused == 0);
  CHECK(header.control_log.paused_since_realtime_ns == 0);
  CHECK(header.control_log.pauses == 1);
  CHECK(header.control_log.first_pause_realtime_ns == log.first_pause_realtime_ns);
  CHECK(header.control_log.paused_ns ==
        header.control_log.last_resume_realtime_ns - header.control_log.first_pause_realtime_ns);
  CHECK(header.control_log.interval_changes == 1);
  WriteReplaced(live);  // an end is there already
  memcpy(&header, read().data(), sizeof(header));
  CHECK(header.outcome.end == format::kEndSignal);
  CHECK_FALSE(WriteControl(folder / "none.cad", {.paused = true}).ok());
}

}  // namespace
}  // namespace cadastre
