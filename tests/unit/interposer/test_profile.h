// A profile for the unit tests of the tables: one file a process (the tables are the library's own statics), in a
// directory of its own, unlinked at once. 8 MiB, 2 MiB under ThreadSanitizer: small enough to fill.
#ifndef CADASTRE_TESTS_UNIT_INTERPOSER_TEST_PROFILE_H_
#define CADASTRE_TESTS_UNIT_INTERPOSER_TEST_PROFILE_H_

#include <unistd.h>

#include "interposer/live_table.h"
#include "interposer/profile_file.h"
#include "interposer/site_table.h"
#include "tests/support/catch.h"

namespace cadastre {

#if defined(CADASTRE_TEST_INTERVAL)
inline constexpr uint64_t kTestInterval = CADASTRE_TEST_INTERVAL;
#else
inline constexpr uint64_t kTestInterval = 512 << 10;
#endif

// Threads of these numbers keep a free slot for themselves, where every block is recorded.
inline constexpr uint32_t kTestOwners = 3;

inline void OpenTestProfile() {
  if (ProfileIsOpen()) return;
  char directory[] = "/tmp/cadastre-unit-XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  char path[4096];
#if defined(__SANITIZE_THREAD__)
  constexpr uint64_t kBytes = 2 << 20;
#else
  constexpr uint64_t kBytes = 8 << 20;
#endif
  ProfileError error = ProfileCreate({directory, "unit.cad", 0600, kBytes, kBytes, false}, path, sizeof(path));
  REQUIRE(error.what == nullptr);
  unlink(path);
  rmdir(directory);
  g_profile.header->pid = static_cast<uint32_t>(getpid());
  REQUIRE(LiveTableInit(g_profile.live_capacity, kTestInterval, kTestOwners));
  REQUIRE(SiteTableInit(g_profile.site_capacity));
  ProfilePublish();
}

}  // namespace cadastre

#endif  // CADASTRE_TESTS_UNIT_INTERPOSER_TEST_PROFILE_H_
