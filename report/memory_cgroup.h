// The cgroup (v2 or v1) that a process's memory is counted in.
//
// It is found through our own mounts, or, where these do not reach it, through the process's. Units: bytes. Errors:
// what cannot be read is not there. Thread-safety: reads files; const functions from any thread.
//
// Example:
//   MemoryCgroup cgroup(4242);
//   for (const std::string& level : cgroup.levels()) Show(level, cgroup.Read(level));
#ifndef CADASTRE_REPORT_MEMORY_CGROUP_H_
#define CADASTRE_REPORT_MEMORY_CGROUP_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbolizer/process_memory.h"

namespace cadastre {

class MemoryCgroup {
 public:
  // `root` is put before every path, for tests.
  explicit MemoryCgroup(pid_t pid, std::string root = "");

  // Directories, from the process's cgroup up to the mount; empty: none was found.
  const std::vector<std::string>& levels() const { return levels_; }
  // limit_bytes 0 = none.
  std::optional<CgroupMemory> Read(const std::string& level) const;
  // Processes of the cgroup that the OOM killer has killed so far; 0 also where that cannot be read.
  uint64_t OomKills() const;

 private:
  bool TryMounts(const std::string& mountinfo, const std::string& mount_root, bool own_view);

  bool is_v2_ = false;
  std::string v1_path_, v2_path_;  // as /proc/PID/cgroup says
  std::vector<std::string> levels_;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_MEMORY_CGROUP_H_
