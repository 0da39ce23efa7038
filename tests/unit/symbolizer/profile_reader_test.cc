// A profile is read while it is written to, after SIGKILL, after a full disk and after a bad copy. Whatever its bytes:
// no crash, and either one clear line or everything that is whole, with what is missing named.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "interposer/profile_format.h"
#include "symbolizer/profile.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

using testing::ProfileBuilder;
using testing::TemporaryDirectory;

Profile Parse(const std::string& bytes) {
  absl::StatusOr<Profile> profile = ParseProfile("x.cad", bytes.data(), bytes.size());
  INFO(profile.status().ToString());
  REQUIRE(profile.ok());
  return *std::move(profile);
}

std::string ErrorOf(const std::string& bytes) {
  absl::StatusOr<Profile> profile = ParseProfile("x.cad", bytes.data(), bytes.size());
  return profile.ok() ? "no error" : std::string(profile.status().message());
}

bool HasWarning(const Profile& profile, const std::string& part) {
  for (const std::string& warning : profile.warnings) {
    if (warning.find(part) != std::string::npos) return true;
  }
  return false;
}

// Two libraries, three sites, four live samples, a buffer, a Java frame.
ProfileBuilder Sample() {
  ProfileBuilder builder;
  uint32_t first = builder.AddLibrary("/usr/lib/libbilling.so", "00112233445566778899aabbccddeeff00112233");
  uint32_t second = builder.AddLibrary("/usr/lib/libsearch.so");
  uint32_t thread = builder.AddThread("worker-1", 1234);
  uint32_t a = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, first, 0x1234),
                                format::MakeLibraryFrame(format::kFrameReturn, second, 0x5678)});
  uint32_t b =
      builder.AddSite({builder.JavaFrame("com.acme.Index.add", 42)}, format::kSiteMmap, format::kSiteTruncatedDepth);
  builder.AddSample(a, 0x10000, 100, 524'288, 1'000'000'000, thread);
  builder.AddSample(a, 0x20000, 600'000, 880'000, 2'000'000'000, thread);
  builder.AddSample(b, 0x30000, 4096, 526'000, 3'000'000'000);
  builder.AddSample(b, 0x40000, 4096, 526'000, 4'000'000'000, thread);
  builder.AddBuffer({{a, 1, 65536 * 3, 1000, 5.0}, {b, 2, 65536, 2000, 7.0}}, 28);
  return builder;
}

TEST_CASE("A method that was being compiled has its name, whether or not a stack names it", "[profile_reader]") {
  ProfileBuilder builder;
  const uint32_t library = builder.AddLibrary("/usr/lib/jvm/libjvm.so", "aabbcc");
  const uint32_t site = builder.AddSite({format::MakeLibraryFrame(format::kFrameReturn, library, 0x1234)});
  const uint32_t sample = builder.AddLive(site, 0x1000, 100, 1000);
  const uint32_t method = builder.AddString("com.acme.Shop.compiled");
  builder.live(sample).context = method;
  const std::string bytes = builder.Build();
  absl::StatusOr<Profile> profile = ParseProfile("x.cad", bytes.data(), bytes.size());
  REQUIRE(profile.ok());
  const std::vector<std::pair<uint32_t, std::string>> wanted = {{method, "com.acme.Shop.compiled"}};
  CHECK(profile->java_names == wanted);
}

TEST_CASE("A whole profile comes out as it was written", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  format::Header& header = builder.header();
  header.counters.stacks_truncated = 3;
  header.counters.dropped_live_full = 4;
  header.counters.frees = 5;
  snprintf(header.label, sizeof(header.label), "before");
  Profile profile = Parse(builder.Build());
  CHECK(profile.warnings.empty());
  CHECK(profile.exe == "/usr/bin/example");
  CHECK(profile.command == std::vector<std::string>{"example", "--fast"});
  CHECK(profile.host == "testhost");
  CHECK(profile.allocator == "libc.so.6");
  CHECK(profile.label == "before");
  CHECK(profile.interval_bytes == 512 * 1024);
  CHECK(profile.end == EndState::kExit);
  CHECK(profile.end_status_known);
  CHECK(profile.duration_ns == 100'000'000'000);
  CHECK(profile.recorded_samples == 4);
  CHECK(profile.recorded_frees == 5);
  CHECK(profile.losses.truncated_stacks == 3);
  CHECK(profile.losses.dropped_samples == 4);
  CHECK(profile.losses.torn_records == 0);

  REQUIRE(profile.libraries.size() == 3);
  CHECK(profile.libraries[1].path == "/usr/lib/libbilling.so");
  CHECK(profile.libraries[1].build_id == "00112233445566778899aabbccddeeff00112233");
  CHECK(profile.libraries[2].build_id.empty());
  REQUIRE(profile.threads.size() == 2);
  CHECK(profile.threads[1].name == "worker-1");
  CHECK(profile.threads[1].tid == 1234);

  REQUIRE(profile.sites.size() == 3);
  CHECK(profile.sites[0].id == format::kSiteOverflow);
  CHECK(profile.sites[0].frames == std::vector<uint64_t>{kStackTableFullFrame});
  const Site& a = profile.sites[1];
  CHECK(a.id == 2);
  CHECK(a.frames.size() == 2);
  CHECK_FALSE(a.truncated);
  CHECK(a.samples == 3);  // two applied, one pending in the buffer
  CHECK(a.allocated_bytes == 524'288 + 880'000 + 1000);
  CHECK(a.allocated_count == Approx(524'288 / 100.0 + 880'000 / 600'000.0 + 3).epsilon(1e-6));
  CHECK(a.allocated_variance ==
        Approx(524'288.0 * (524'288 - 100) + 880'000.0 * (880'000 - 600'000) + 5).epsilon(1e-12));
  CHECK(profile.sites[2].kind == SiteKind::kMmap);
  CHECK(profile.sites[2].truncated);
  CHECK(profile.sites[2].samples == 4);

  REQUIRE(profile.live.size() == 4);
  CHECK(profile.live[0].site == 1);
  CHECK(profile.live[0].thread == 1);
  CHECK(profile.live[0].size_bytes == 100);
  CHECK(profile.live[0].weight_bytes == 524'288);
  REQUIRE(profile.java_names.size() == 1);
  CHECK(profile.java_names[0].second == "com.acme.Index.add");
}

TEST_CASE("Bytes at the peak follow the epoch rule", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  builder.header().peak_epoch = 9;
  builder.site(2).live_bytes = 100;
  builder.site(2).live_at_peak_bytes = 700;
  builder.site(2).peak_epoch = 9;  // changed since the peak
  builder.site(3).live_bytes = 200;
  builder.site(3).live_at_peak_bytes = 1;
  builder.site(3).peak_epoch = 8;  // not changed since
  builder.site(3).own_peak_bytes = -5;
  Profile profile = Parse(builder.Build());
  CHECK(profile.sites[1].bytes_at_peak == 700);
  CHECK(profile.sites[2].bytes_at_peak == 200);
  CHECK(profile.sites[2].own_peak_bytes == 0);
}

TEST_CASE("Half-written records are left out and counted", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  builder.live(0).state = (7 << 2) | format::kWriting;
  builder.live(1).weight = builder.live(1).size - 1;
  builder.site(3).state = format::kWriting;  // two live samples and a delta lose their stack
  builder.library(2).state = format::kWriting;
  Profile profile = Parse(builder.Build());
  CHECK(profile.live.empty());
  CHECK(profile.sites.size() == 2);
  CHECK(profile.libraries.size() == 2);
  CHECK(profile.losses.torn_records == 7);
  CHECK(HasWarning(profile, "2 live samples belong to stacks that are not whole"));
  CHECK(HasWarning(profile, "7 records are half-written or damaged"));
}

TEST_CASE("Sites whose frames cannot be theirs are torn", "[profile_reader]") {
  for (auto [start, count] : std::vector<std::pair<uint64_t, uint32_t>>{
           {1'000'000, 1}, {0, 5000}, {UINT64_MAX, 2}, {511, 2}, {100, 1}, {UINT64_MAX - 1, UINT32_MAX}}) {
    ProfileBuilder builder = Sample();
    builder.site(2).frame_start = start;
    builder.site(2).frame_count = count;
    Profile profile = Parse(builder.Build());
    INFO(start << " " << count);
    CHECK(profile.sites.size() == 2);
    CHECK(profile.losses.torn_records >= 1);
  }
}

TEST_CASE("Of two live records at one address the newest is kept and the missed free counted", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  builder.AddLive(2, 0x10000, 50, 60, 9'000'000'000);
  builder.AddLive(2, 0x20000, 50, 60, 1);
  Profile profile = Parse(builder.Build());
  REQUIRE(profile.live.size() == 4);
  CHECK(profile.losses.missed_frees == 2);
  CHECK(profile.live[0].size_bytes == 50);
  CHECK(profile.live[1].size_bytes == 600'000);
}

TEST_CASE("A mapping and a block may begin at the same address", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  builder.AddLive(3, 0x10000, 4096, 4096);
  CHECK(Parse(builder.Build()).live.size() == 5);
}

TEST_CASE("Insane live records are torn", "[profile_reader]") {
  for (int field = 0; field < 5; field++) {
    ProfileBuilder builder = Sample();
    format::LiveRecord& record = builder.live(0);
    if (field == 0) record.address = 0;
    if (field == 1) record.address = UINT64_MAX;
    if (field == 2) record.size = record.weight = 1ull << 60;
    if (field == 3) record.time_ns = UINT64_MAX;
    if (field == 4) record.state |= 3;
    Profile profile = Parse(builder.Build());
    CHECK(profile.live.size() == 3);
    CHECK(profile.losses.torn_records == 1);
  }
  ProfileBuilder builder = Sample();
  builder.live(0).thread = 77;  // not known: no reason to lose the bytes
  CHECK(Parse(builder.Build()).live[0].thread == 0);
}

TEST_CASE("The executable that the loader has no name for is the program", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  builder.library(2).path = 0;
  builder.library(2).flags = format::kLibraryIsExecutable;
  CHECK(Parse(builder.Build()).libraries[2].path == "/usr/bin/example");
}

TEST_CASE("Damaged strings read as empty", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  std::string bytes = builder.Build();
  size_t at = bytes.find("testhost");
  bytes[at] = 'T';
  Profile profile = Parse(bytes);
  CHECK(profile.host.empty());
  CHECK(profile.losses.torn_records == 1);
  builder.header().exe = UINT32_MAX;
  CHECK(Parse(builder.Build()).exe.empty());
}

TEST_CASE("What is not a profile gets one line with the path and the offset", "[profile_reader]") {
  std::string bytes = Sample().Build();
  CHECK(ErrorOf("") == "x.cad: not a profile: it has 0 bytes, and a header has 4096");
  CHECK(ErrorOf("#!/bin/sh\necho hello\n") == "x.cad: not a profile: bad magic at offset 0");
  CHECK(ErrorOf(bytes.substr(0, 100)) == "x.cad: the header is cut at offset 100 of 4096");
  std::string other = bytes;
  other[8] = 7;
  CHECK(ErrorOf(other) == "x.cad: version 7 at offset 8 is not supported; this program reads versions 1 and 3 to 5");
  other = bytes;
  other[12] = 1;
  CHECK(ErrorOf(other) == "x.cad: a header of 4097 bytes at offset 12; version 1 has 4096");
  CHECK(ReadProfile("/nowhere/x.cad").status().message() == "/nowhere/x.cad: cannot open: No such file or directory");
  CHECK(ReadProfile("/tmp").status().message() == "/tmp: is a directory, not a profile");
  CHECK(ReadProfile("/dev/null").status().message() == "/dev/null: not a regular file");
}

TEST_CASE("The interval is what the target goes by now, and a pause is what was written", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  format::Header& header = builder.header();
  Profile profile = Parse(builder.Build());
  CHECK(profile.current_interval_bytes == profile.interval_bytes);
  CHECK_FALSE(profile.interval_changed());
  CHECK_FALSE(profile.pauses.now);
  header.counters.interval_doublings = 2;
  CHECK(Parse(builder.Build()).current_interval_bytes == 4 * header.interval_bytes);
  header.counters.interval_doublings = UINT64_MAX;
  CHECK(Parse(builder.Build()).current_interval_bytes <= 1ull << 51);
  header.control.interval_bytes = 12345;
  header.control_log.interval_changes = 1;
  header.control.paused = 1;
  header.control_log.paused_since_realtime_ns = 77;
  header.control_log.pauses = 2;
  header.run_state = format::kRunRecording;
  profile = Parse(builder.Build());
  CHECK(profile.current_interval_bytes == 12345);
  CHECK(profile.interval_changed());
  CHECK(profile.pauses.now);
  CHECK(profile.pauses.since_realtime_ns == 77);
  CHECK(profile.pauses.finished == 2);
  CHECK(profile.run_state == format::kRunPaused);
}

TEST_CASE("A cut file names what is missing", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  std::string bytes = builder.Build();
  uint64_t live_offset = bytes.size() - 4096;
  Profile profile = Parse(bytes.substr(0, live_offset + 2 * sizeof(format::LiveRecord) + 5));
  CHECK(profile.live.size() == 2);
  CHECK(profile.sites.size() == 3);
  REQUIRE(profile.warnings.size() == 1);
  CHECK(profile.warnings[0] == "file is cut at " + std::to_string(live_offset + 101) + " of " +
                                   std::to_string(bytes.size()) + " bytes: live samples from record 2 on are missing");
  CHECK(profile.incomplete ==
        "the file is cut at " + std::to_string(live_offset + 101) + " of " + std::to_string(bytes.size()) + " bytes");
  CHECK(Parse(bytes).incomplete == "");
}

TEST_CASE("A file cut at any byte gives one line or what is whole", "[profile_reader]") {
  std::string bytes = Sample().Build();
  uint64_t live_before = 0;
  for (size_t size = 0; size < bytes.size(); size++) {
    absl::StatusOr<Profile> profile = ParseProfile("x.cad", bytes.data(), size);
    if (size < sizeof(format::Header)) {
      REQUIRE_FALSE(profile.ok());
      continue;
    }
    REQUIRE(profile.ok());
    REQUIRE(HasWarning(*profile, "file is cut at "));
    REQUIRE(profile->incomplete != "");
    REQUIRE(profile->live.size() >= live_before);  // more of the file never gives less
    live_before = profile->live.size();
  }
  CHECK(live_before == 4);
}

TEST_CASE("Ten thousand flipped bits never crash the reader", "[profile_reader]") {
  ProfileBuilder builder = Sample();
  const std::string bytes = builder.Build();
  std::mt19937_64 random(3);
  uint64_t refused = 0;
  std::vector<size_t> used;  // most of the file is zeros; half of the flips go where something is
  for (size_t i = 0; i < bytes.size(); i++) {
    if (bytes[i] != 0) used.push_back(i);
  }
  for (int i = 0; i < 10'000; i++) {
    std::string damaged = bytes;
    int flips = 1 + static_cast<int>(random() % 4);
    for (int flip = 0; flip < flips; flip++) {
      size_t at = random() % 2 == 0 ? used[random() % used.size()] : random() % bytes.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (random() % 8)));
    }
    absl::StatusOr<Profile> profile = ParseProfile("x.cad", damaged.data(), damaged.size());
    if (!profile.ok()) {
      refused++;
      continue;
    }
    for (const LiveSample& sample : profile->live) {
      REQUIRE(sample.site < profile->sites.size());
      REQUIRE(sample.thread < profile->threads.size());
    }
    for (const Site& site : profile->sites) {
      REQUIRE_FALSE(site.frames.empty());
      REQUIRE(std::isfinite(site.allocated_variance));
    }
  }
  CHECK(refused < 5'000);
}

TEST_CASE("Regions that overlap, wrap around or have strange records are not read", "[profile_reader]") {
  const std::string bytes = Sample().Build();
  auto with_region = [&](uint32_t kind, format::Region region) {
    std::string damaged = bytes;
    memcpy(damaged.data() + offsetof(format::Header, regions) + kind * sizeof(region), &region, sizeof(region));
    return Parse(damaged);
  };
  uint32_t live_bytes = sizeof(format::LiveRecord);
  for (format::Region region : {format::Region{0, 4096, live_bytes, 0}, format::Region{4096, 4096, live_bytes, 0},
                                format::Region{UINT64_MAX - 4095, 8192, live_bytes, 0},
                                format::Region{1 << 20, UINT64_MAX - 4095, live_bytes, 0},
                                format::Region{bytes.size() - 4095, 4000, live_bytes, 0},
                                format::Region{bytes.size() - 4096, 4096, live_bytes + 8, 0}}) {
    Profile profile = with_region(format::kRegionLive, region);
    CHECK(profile.live.empty());
    CHECK(HasWarning(profile, "the header's entry for live samples"));
    CHECK(profile.incomplete == "the file's live samples cannot be read");
  }
  // A capacity beyond the end of the file is a cut file, and costs no memory.
  Profile profile = with_region(format::kRegionLive, {bytes.size() - 4096, 1ull << 60, live_bytes, 0});
  CHECK(profile.live.size() == 4);
  CHECK(HasWarning(profile, "live samples from record 85 on are missing"));
}

TEST_CASE("A sparse file of a terabyte is read by its data alone", "[profile_reader]") {
  TemporaryDirectory directory;
  ProfileBuilder builder = Sample();
  std::string bytes = builder.Build();
  std::string path = directory / "x.cad";
  REQUIRE(builder.WriteTo(path));
  // The live region moves to the end and grows.
  format::Region live{bytes.size(), 1ull << 40, sizeof(format::LiveRecord), 0};
  int descriptor = open(path.c_str(), O_RDWR);
  REQUIRE(ftruncate(descriptor, static_cast<off_t>(live.offset + live.bytes)) == 0);
  REQUIRE(pwrite(descriptor, bytes.data() + bytes.size() - 4096, 4096, static_cast<off_t>(live.offset)) == 4096);
  REQUIRE(pwrite(descriptor, &live, sizeof(live), offsetof(format::Header, regions) + 6 * sizeof(live)) ==
          sizeof(live));
  close(descriptor);
  absl::StatusOr<Profile> profile = ReadProfile(path);
  REQUIRE(profile.ok());
  CHECK(profile->live.size() == 4);
}

TEST_CASE("A profile that is written to while it is read gives only whole records", "[profile_reader]") {
  TemporaryDirectory directory;
  ProfileBuilder builder;
  uint32_t site = builder.AddSite({format::MakeUnknownFrame(format::kFrameUnknown, 0x1234)});
  for (uint64_t i = 0; i < 2000; i++) builder.AddLive(site, 0x1000 + 64 * i, 100 + i, 1000 + (100 + i));
  std::string path = directory / "x.cad";
  REQUIRE(builder.WriteTo(path));
  std::string bytes = builder.Build();
  format::Header header;
  memcpy(&header, bytes.data(), sizeof(header));
  // A writer that reuses slots as the interposer does; every whole record has weight == size + 1000 and address == 64 *
  // size.
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    int descriptor = open(path.c_str(), O_RDWR);
    std::mt19937_64 random(5);
    uint64_t size = 5000;
    while (!stop) {
      uint64_t slot = random() % 2000;
      off_t at = static_cast<off_t>(header.regions[format::kRegionLive].offset + slot * sizeof(format::LiveRecord));
      format::LiveRecord record;
      if (pread(descriptor, &record, sizeof(record), at) != sizeof(record)) break;
      uint32_t generation = (record.state >> 2) + 1;
      uint32_t state = (generation << 2) | format::kWriting;
      if (pwrite(descriptor, &state, sizeof(state), at) != sizeof(state)) break;
      size++;
      uint64_t body[3] = {0x1000 + 64 * size, size, size + 1000};
      for (int i = 0; i < 3; i++) {
        if (pwrite(descriptor, &body[i], 8, at + 8 + 8 * i) != 8) break;
      }
      state = (generation << 2) | format::kReady;
      if (pwrite(descriptor, &state, sizeof(state), at) != sizeof(state)) break;
    }
    close(descriptor);
  });
  for (int i = 0; i < 50; i++) {
    absl::StatusOr<Profile> profile = ReadProfile(path);
    REQUIRE(profile.ok());
    REQUIRE(profile->live.size() > 1000);
    for (const LiveSample& sample : profile->live) REQUIRE(sample.weight_bytes == sample.size_bytes + 1000);
  }
  stop = true;
  writer.join();
}

TEST_CASE("A thread is called by its whole name, or by the kernel's where the whole one is not there",
          "[profile_reader]") {
  ProfileBuilder builder = Sample();
  builder.thread(builder.AddThread("http-nio-8080-e")).full_name = builder.AddString("http-nio-8080-exec-12");
  builder.thread(builder.AddThread("http-nio-8081-e")).full_name = 1'000'000;  // no string
  builder.AddThread("http-nio-8082-e");
  TemporaryDirectory directory;
  const std::string path = directory / "x.cad";
  REQUIRE(builder.WriteTo(path));
  absl::StatusOr<Profile> profile = ReadProfile(path);
  REQUIRE(profile.ok());
  REQUIRE(profile->threads.size() == 5);
  CHECK(profile->threads[2].name == "http-nio-8080-exec-12");
  CHECK(profile->threads[3].name == "http-nio-8081-e");
  CHECK(profile->threads[4].name == "http-nio-8082-e");
}

TEST_CASE("A file that shrinks while it is read is a cut file, not a signal", "[profile_reader]") {
  TemporaryDirectory directory;
  ProfileBuilder builder = Sample();
  builder.set_spare_pages(64);
  std::string path = directory / "x.cad";
  std::atomic<bool> stop = false;
  REQUIRE(builder.WriteTo(path));
  std::thread shrinker([&] {
    std::string bytes = builder.Build();
    while (!stop) {
      if (truncate(path.c_str(), 5000) != 0) break;
      std::ofstream(path, std::ios::in | std::ios::out) << bytes;
    }
  });
  for (int i = 0; i < 300; i++) (void)ReadProfile(path);
  stop = true;
  shrinker.join();
}

}  // namespace
}  // namespace cadastre
