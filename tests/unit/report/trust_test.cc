// A number from a profile that cannot be trusted is worse than none: each reason, and that it does not fire without
// one.
#include "report/trust.h"

#include "tests/support/catch.h"

namespace cadastre {
namespace {

Profile GoodProfile() {
  Profile profile;
  profile.interval_bytes = 512 * 1024;
  profile.recorded_samples = 1000;
  profile.duration_ns = 312'000'000'000;
  profile.allocator = "libc.so.6";
  profile.libraries.resize(3);
  profile.libraries[1].path = "/opt/lib/cadastre/libcadastre.so";
  profile.libraries[1].cadastre = true;
  profile.libraries[2].path = "/usr/lib/libjemalloc.so.2";
  return profile;
}

TEST_CASE("Enough samples without losses are trusted", "[trust]") {
  Trust trust = JudgeProfile(GoodProfile(), 200);
  CHECK(trust.usable);
  CHECK(trust.reason == "");
}

TEST_CASE("Too few samples are not, except where every allocation counts", "[trust]") {
  Profile profile = GoodProfile();
  profile.recorded_samples = 199;
  CHECK(JudgeProfile(profile, 200).reason ==
        "unusable: 199 samples in 312 s, fewer than 200; a smaller interval= or a longer run gives more");
  CHECK(JudgeProfile(profile, 100).usable);
  profile.interval_bytes = 1;
  CHECK(JudgeProfile(profile, 200).usable);
  profile.recorded_samples = 0;
  CHECK(JudgeProfile(profile, 200).reason == "unusable: 0 samples in 312 s");
}

TEST_CASE("An allocator in front of Cadastre is named", "[trust]") {
  Profile profile = GoodProfile();
  std::swap(profile.libraries[1], profile.libraries[2]);
  profile.recorded_samples = 0;
  CHECK(JudgeProfile(profile, 200).reason ==
        "unusable: 0 samples in 312 s; libjemalloc.so.2 serves malloc before Cadastre");
}

TEST_CASE("A program with a malloc of its own is named too", "[trust]") {
  Profile profile = GoodProfile();
  profile.recorded_samples = 0;
  profile.libraries.insert(profile.libraries.begin() + 1, Library{});
  profile.libraries[1].path = profile.allocator_path = "/opt/app/bin/server";
  CHECK(JudgeProfile(profile, 200).reason == "unusable: 0 samples in 312 s; server serves malloc before Cadastre");
  profile.allocator_path = "/lib/libc.so.6";
  CHECK(JudgeProfile(profile, 200).reason == "unusable: 0 samples in 312 s");
}

TEST_CASE("Another allocator than the expected one makes a profile unusable", "[trust]") {
  Profile profile = GoodProfile();
  profile.expect = "jemalloc";
  CHECK(JudgeProfile(profile, 200).reason ==
        "unusable: 1,000 samples in 312 s; malloc is served by libc.so.6, expected jemalloc");
  profile.allocator = "libjemalloc.so.2";
  CHECK(JudgeProfile(profile, 200).usable);
}

TEST_CASE("Losses over one percent make a profile unusable, smaller ones are told", "[trust]") {
  Profile profile = GoodProfile();
  profile.losses.dropped_samples = 10;  // 10 of 1010: 0.99 %
  Trust trust = JudgeProfile(profile, 200);
  CHECK(trust.usable);
  REQUIRE(trust.warnings.size() == 1);
  profile.losses.dropped_samples = 11;  // 11 of 1011: 1.09 %
  CHECK_FALSE(JudgeProfile(profile, 200).usable);
  CHECK(LossShare(profile) == Approx(11.0 / 1011));
}

TEST_CASE("Paused time is told, while it lasts and after", "[trust]") {
  Profile profile = GoodProfile();
  profile.pid = 4242;
  profile.end = EndState::kRunning;
  profile.start_realtime_ns = 1'767'225'600'000'000'000;  // 2026-01-01T00:00:00Z
  profile.pauses.now = true;
  profile.pauses.since_realtime_ns = profile.start_realtime_ns + 12'000'000'000;
  Trust trust = JudgeProfile(profile, 200);
  CHECK(trust.usable);
  REQUIRE(trust.warnings.size() == 1);
  CHECK(trust.warnings[0] ==
        "recording is paused since 00:00:12 UTC (300 s): what is allocated before `cadastre resume 4242` has no owner "
        "and is not counted; in RSS it is part of the retention");
  profile.recorded_samples = 0;
  CHECK(JudgeProfile(profile, 200).reason == "unusable: 0 samples in 312 s; paused since 00:00:12 UTC");
  profile.end = EndState::kExit;
  CHECK(JudgeProfile(profile, 200).warnings[0] ==
        "recording was paused since 00:00:12 UTC (300 s): what was allocated then has no owner and is not counted; in "
        "RSS it is part of the retention");

  profile = GoodProfile();
  profile.pauses.finished = 1;
  profile.pauses.first_realtime_ns = 1'767'225'600'000'000'000;
  profile.pauses.last_resume_realtime_ns = profile.pauses.first_realtime_ns + 60'000'000'000;
  profile.pauses.finished_ns = 60'000'000'000;
  CHECK(JudgeProfile(profile, 200).warnings[0] ==
        "recording was paused from 00:00:00 UTC to 00:01:00 UTC (60 s): what was allocated then has no owner and is "
        "not counted; in RSS it is part of the retention");
  profile.pauses.finished = 3;
  profile.pauses.finished_ns = 20'000'000'000;
  CHECK(JudgeProfile(profile, 200).warnings[0] ==
        "recording was paused 3 times between 00:00:00 UTC and 00:01:00 UTC, 20 s in all: what was allocated then has "
        "no owner and is not counted; in RSS it is part of the retention");
}

TEST_CASE("An interval that changed is told with both values", "[trust]") {
  Profile profile = GoodProfile();
  profile.losses.interval_doublings = 1;
  profile.current_interval_bytes = 1 << 20;
  CHECK(JudgeProfile(profile, 200).warnings[0] ==
        "the interval was doubled once because memory= ran short: 512 KiB at first, 1 MiB at last; each sample counts "
        "by its own");
  profile.losses.interval_doublings = 0;
  profile.interval_changes = 2;
  CHECK(
      JudgeProfile(profile, 200).warnings[0] ==
      "the interval was changed 2 times while it ran: 512 KiB at first, 1 MiB at last; each sample counts by its own");
}

TEST_CASE("Mappings that were missed are told", "[trust]") {
  Profile profile = GoodProfile();
  profile.losses.mappings_full = 3;
  profile.losses.mapping_events_lost = 1200;
  const Trust trust = JudgeProfile(profile, 200);
  CHECK(trust.usable);
  REQUIRE(trust.warnings.size() == 2);
  CHECK(trust.warnings[0] == "3 mappings had no room in the profile and are not shown: memory= gives it more");
  CHECK(trust.warnings[1].substr(0, 26) == "1,200 changes of mappings ");
}

TEST_CASE("Damaged records are losses", "[trust]") {
  Profile profile = GoodProfile();
  profile.losses.torn_records = 2;  // threads that were killed at work
  CHECK(JudgeProfile(profile, 200).usable);
  profile.losses.torn_records = 250;
  CHECK(JudgeProfile(profile, 200).reason ==
        "unusable: 20.0 % of the samples were lost (250): its records are damaged");
}

TEST_CASE("A file that is not whole is unusable however many samples are left", "[trust]") {
  Profile profile = GoodProfile();
  profile.incomplete = "the file is cut at 200000 of 1388544 bytes";
  CHECK(JudgeProfile(profile, 0).reason == "unusable: the file is cut at 200000 of 1388544 bytes");
  CHECK_FALSE(JudgeProfile(profile, 0).usable);
}

}  // namespace
}  // namespace cadastre
