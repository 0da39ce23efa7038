// How near a process is to the limit at which it is killed: its cgroup's memory limit (v2 or v1), or one that the user
// names.
//
// The use of a cgroup is its working set, usage without inactive file pages, since those go before anybody is killed.
// Of all cgroups above the process the one that is nearest to its limit counts. They are found through our own mounts,
// else through those that the process sees (/proc/PID/root): a sidecar has another view. Limits may change and are read
// each time. Errors: what cannot be read is "no limit". Units: bytes. Thread-safety: reads files.
//
// Example:
//   MemoryGauge gauge(4242, 0);
//   MemoryUse use = gauge.Read();
//   if (use.limit_bytes > 0) printf("%.0f %%", 100.0 * use.used_bytes / use.limit_bytes);
#ifndef CADASTRE_REPORT_MEMORY_GAUGE_H_
#define CADASTRE_REPORT_MEMORY_GAUGE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "report/memory_cgroup.h"

namespace cadastre {

struct MemoryUse {
  uint64_t used_bytes = 0, limit_bytes = 0;  // limit 0 = none is known; used is the process's RSS then
  bool is_of_cgroup = false;
};

class MemoryGauge {
 public:
  // limit_bytes != 0: the process's RSS against that. `root` is put before every path, for tests.
  MemoryGauge(pid_t pid, uint64_t limit_bytes, std::string root = "");

  MemoryUse Read() const;
  // Processes of the cgroup that the OOM killer has killed so far; 0 also where that cannot be read.
  uint64_t OomKills() const { return cgroup_.OomKills(); }
  // The process's cgroup as a directory; empty: none was found.
  std::string cgroup() const { return cgroup_.levels().empty() ? "" : cgroup_.levels()[0]; }

 private:
  pid_t pid_;
  uint64_t limit_bytes_;
  MemoryCgroup cgroup_;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_MEMORY_GAUGE_H_
