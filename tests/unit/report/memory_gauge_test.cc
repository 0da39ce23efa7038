// Cgroups as containers show them: v2 and v1, a limit above the process's own cgroup, a view through the process's
// root. Made as plain files below a directory that stands for "/".
#include "report/memory_gauge.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace cadastre {
namespace {

class Root {
 public:
  Root() {
    Put("proc/7/statm", "1000 256 0 0 0 0 0\n");  // 256 pages: 1 MiB
  }
  void Put(const std::string& file, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path + "/" + file).parent_path());
    std::ofstream(path + "/" + file) << text;
  }
  void Level(const std::string& directory, const std::string& max, uint64_t current, uint64_t idle) {
    Put(directory + "/memory.max", max + "\n");
    Put(directory + "/memory.current", std::to_string(current) + "\n");
    Put(directory + "/memory.stat", "anon 1\ninactive_file " + std::to_string(idle) + "\nactive_file 3\n");
    Put(directory + "/memory.events", "low 0\noom 1\noom_kill 2\n");
  }

  testing::TemporaryDirectory directory;
  const std::string& path = directory.path();
};

TEST_CASE("A version 2 cgroup's working set is held against its limit", "[memory_gauge]") {
  Root root;
  root.Put("proc/7/cgroup", "0::/pods/pay\n");
  root.Put("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
  root.Level("sys/fs/cgroup/pods/pay", "1000", 900, 100);
  MemoryGauge gauge(7, 0, root.path);
  MemoryUse use = gauge.Read();
  CHECK(use.used_bytes == 800);
  CHECK(use.limit_bytes == 1000);
  CHECK(use.is_of_cgroup);
  CHECK(gauge.OomKills() == 2);
  CHECK(gauge.cgroup() == root.path + "/sys/fs/cgroup/pods/pay");
  // Changed while it runs.
  root.Put("sys/fs/cgroup/pods/pay/memory.max", "4000\n");
  CHECK(gauge.Read().limit_bytes == 4000);
}

TEST_CASE("The cgroup above that is nearest to its limit counts", "[memory_gauge]") {
  Root root;
  root.Put("proc/7/cgroup", "0::/pods/pay\n");
  root.Put("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.Level("sys/fs/cgroup/pods/pay", "max", 900, 0);
  root.Level("sys/fs/cgroup/pods", "2000", 1900, 0);
  CHECK(MemoryGauge(7, 0, root.path).Read().used_bytes == 1900);
  root.Level("sys/fs/cgroup/pods/pay", "910", 900, 0);
  CHECK(MemoryGauge(7, 0, root.path).Read().limit_bytes == 910);
}

TEST_CASE("A version 1 cgroup, with a controller's mount that begins below the root", "[memory_gauge]") {
  Root root;
  root.Put("proc/7/cgroup", "5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n");
  root.Put("proc/self/mountinfo",
           "30 20 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
           "31 20 0:27 /docker/x /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
           "32 20 0:28 /docker/x /sys/fs/cgroup/memory ro shared:9 - cgroup cgroup rw,memory\n");
  root.Put("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
  root.Put("sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n");
  root.Put("sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  root.Put("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  MemoryGauge gauge(7, 0, root.path);
  CHECK(gauge.Read().used_bytes == 2500);
  CHECK(gauge.Read().limit_bytes == 5000);
  CHECK(gauge.OomKills() == 4);
  root.Put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  CHECK(gauge.Read().limit_bytes == 0);
}

TEST_CASE("A sidecar sees the cgroup through the process's own mounts", "[memory_gauge]") {
  Root root;
  root.Put("proc/7/cgroup", "0::/../pay\n");
  root.Put("proc/self/mountinfo", "30 20 0:26 /../ /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.Put("proc/7/mountinfo", "40 20 0:26 /../pay /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n");
  root.Level("proc/7/root/sys/fs/cgroup", "1000", 700, 0);
  CHECK(MemoryGauge(7, 0, root.path).Read().used_bytes == 700);
}

TEST_CASE("Without a limit the resident size is all there is to say", "[memory_gauge]") {
  Root root;
  MemoryUse use = MemoryGauge(7, 0, root.path).Read();
  CHECK(use.limit_bytes == 0);
  CHECK_FALSE(use.is_of_cgroup);
  CHECK(MemoryGauge(7, 0, root.path).OomKills() == 0);
  // The user's limit is one on the resident size, whatever the cgroup says. (That is read of the real process.)
  CHECK(MemoryGauge(getpid(), 1 << 30).Read().limit_bytes == 1 << 30);
  CHECK(MemoryGauge(getpid(), 1 << 30).Read().used_bytes > 0);
}

}  // namespace
}  // namespace cadastre
