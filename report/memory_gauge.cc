#include "report/memory_gauge.h"

#include <algorithm>
#include <utility>

#include "report/process_info.h"

namespace cadastre {

MemoryGauge::MemoryGauge(pid_t pid, uint64_t limit_bytes, std::string root)
    : pid_(pid), limit_bytes_(limit_bytes), cgroup_(pid, std::move(root)) {}

MemoryUse MemoryGauge::Read() const {
  MemoryUse use;
  if (limit_bytes_ != 0) {
    use.used_bytes = ResidentBytesOf(pid_);
    use.limit_bytes = limit_bytes_;
    return use;
  }
  for (const std::string& level : cgroup_.levels()) {
    const std::optional<CgroupMemory> memory = cgroup_.Read(level);
    if (!memory.has_value() || memory->limit_bytes == 0) continue;
    const uint64_t limit = memory->limit_bytes;
    const uint64_t used = memory->current_bytes - std::min(memory->current_bytes, memory->inactive_file_bytes);
    // The larger share: a / b > c / d, without a division.
    if (use.limit_bytes == 0 || static_cast<double>(used) * static_cast<double>(use.limit_bytes) >
                                    static_cast<double>(use.used_bytes) * static_cast<double>(limit))
      use = {used, limit, true};
  }
  if (use.limit_bytes == 0) use.used_bytes = ResidentBytesOf(pid_);
  return use;
}

}  // namespace cadastre
