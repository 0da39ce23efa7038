// What a user types for a profile must find that profile, or say what there is instead.
#include "report/profile_path.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "report/profile_copy.h"
#include "tests/support/catch.h"
#include "tests/support/profile_builder.h"

namespace cadastre {
namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/cadastre-path-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

TEST_CASE("Labels, the last snapshot, uptimes and the peak are found beside the profile", "[profile_path]") {
  Folder folder;
  std::string profile = folder.path + "/a.cad";
  testing::ProfileBuilder builder;
  REQUIRE(builder.WriteTo(profile));
  REQUIRE(FindProfile(profile)->path == profile);
  CHECK_FALSE(FindProfile(profile + "@last").ok());
  CHECK(FindProfile(profile + "@peak")->at_peak);
  CHECK(FindProfile(profile + "@peak")->path == profile);

  // Snapshots at an uptime of 100 s and of 2 h.
  auto snapshot = [&](const std::string& label, uint64_t uptime_s) {
    testing::ProfileBuilder at;
    at.header().is_snapshot = 1;
    at.header().outcome = {};
    at.header().snapshot_begin_realtime_ns = at.header().start_realtime_ns + uptime_s * 1'000'000'000;
    at.header().snapshot_end_realtime_ns = at.header().snapshot_begin_realtime_ns;
    REQUIRE(at.WriteTo(profile + "@" + label));
  };
  snapshot("late", 7200);
  snapshot("early", 100);
  std::filesystem::last_write_time(profile + "@late",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(FindProfile(profile + "@early")->path == profile + "@early");
  CHECK(FindProfile(profile + "@early")->base == profile);
  CHECK(FindProfile(profile + "@last")->path == profile + "@early");
  CHECK(FindProfile(profile + "@2h")->path == profile + "@late");
  CHECK(FindProfile(profile + "@2h")->note == "");
  CHECK(FindProfile(profile + "@3m")->path == profile + "@early");
  CHECK(FindProfile(profile + "@3m")->note ==
        "no snapshot was taken at an uptime of 3m: the nearest is @early at 100 s");
  CHECK(std::string(FindProfile(profile + "@3h").status().message()) ==
        profile + "@3h: it goes to an uptime of 2 h 0 min; its snapshots are late, early");
  CHECK(SnapshotsOf(profile).size() == 2);
  absl::StatusOr<ProfilePath> missing = FindProfile(profile + "@other");
  REQUIRE_FALSE(missing.ok());
  CHECK(std::string(missing.status().message()) == profile + " has no snapshot \"other\"; it has late, early");
}

TEST_CASE("The peak, which is taken by itself, is the last snapshot only if there is no other", "[profile_path]") {
  Folder folder;
  std::string profile = folder.path + "/a.cad";
  testing::ProfileBuilder builder;
  REQUIRE(builder.WriteTo(profile));
  REQUIRE(builder.WriteTo(profile + "@peak"));
  CHECK(FindProfile(profile + "@last")->path == profile + "@peak");
  REQUIRE(builder.WriteTo(profile + "@noon"));
  std::filesystem::last_write_time(profile + "@noon",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  CHECK(FindProfile(profile + "@last")->path == profile + "@noon");
  CHECK(FindProfile(profile + "@peak")->path == profile + "@peak");
  CHECK_FALSE(FindProfile(profile + "@peak")->at_peak);
}

TEST_CASE("A snapshot of another process is not the last one, nor one at an uptime", "[profile_path]") {
  Folder folder;
  std::string profile = folder.path + "/a.cad";
  testing::ProfileBuilder builder, other;
  REQUIRE(builder.WriteTo(profile));
  REQUIRE(builder.WriteTo(profile + "@ours"));
  std::filesystem::last_write_time(profile + "@ours",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  other.header().pid++;
  REQUIRE(other.WriteTo(profile + "@theirs"));
  CHECK(FindProfile(profile + "@last")->path == profile + "@ours");
  CHECK(FindProfile(profile + "@100s")->path == profile + "@ours");
  CHECK(FindProfile(profile + "@ours")->note == "");
  CHECK(FindProfile(profile + "@theirs")->note == "@theirs is a snapshot of another process than " + profile);
}

TEST_CASE("A name with an at-sign that exists is that file", "[profile_path]") {
  Folder folder;
  std::string profile = folder.path + "/a@b.cad";
  testing::ProfileBuilder builder;
  REQUIRE(builder.WriteTo(profile));
  CHECK(FindProfile(profile)->base == profile);
}

TEST_CASE("What is neither a file nor a recorded process says so", "[profile_path]") {
  CHECK(std::string(FindProfile("/no/such.cad").status().message()) == "/no/such.cad: No such file or directory");
  CHECK(std::string(FindProfile("999999999").status().message()) == "no process 999999999");
  std::string self = std::string(FindProfile(std::to_string(getpid())).status().message());
  CHECK(self.find("was not started with Cadastre") != std::string::npos);
  CHECK(self.find("start=paused") != std::string::npos);
}

TEST_CASE("Durations are read as people write them", "[profile_path]") {
  CHECK(ParseDurationSeconds("90s") == 90);
  CHECK(ParseDurationSeconds("10m") == 600);
  CHECK(ParseDurationSeconds("1h30m") == 5400);
  CHECK(ParseDurationSeconds("2d") == 172800);
  CHECK(ParseDurationSeconds("250ms") == 0.25);
  for (const char* bad : {"", "10", "m", "10x", "before", "1.2.3h"}) {
    INFO(bad);
    CHECK_FALSE(ParseDurationSeconds(bad).has_value());
  }
}

}  // namespace
}  // namespace cadastre
