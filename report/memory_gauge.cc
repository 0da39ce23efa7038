#include "report/memory_gauge.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "report/process_info.h"

namespace cadastre {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;
// cgroup v1 has no word for "none": it says the largest multiple of a page.
constexpr uint64_t kLargestLimit = 1ull << 60;

uint64_t ReadLimit(const std::string& path) {
  uint64_t bytes = 0;
  const std::string text = ReadWholeFile(path, 64);
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &bytes)) return kNoLimit;  // "max", or not there
  return bytes < kLargestLimit ? bytes : kNoLimit;
}

// The number behind `name` in "name 12\nother 3\n"; 0 if it is not there.
uint64_t ReadField(const std::string& path, absl::string_view name) {
  const std::string text = ReadWholeFile(path, 64 << 10);
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    uint64_t value = 0;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ") && absl::SimpleAtoi(line, &value))
      return value;
  }
  return 0;
}

bool IsDirectory(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool HasController(absl::string_view list, absl::string_view name) {
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    if (item == name) return true;
  }
  return false;
}

}  // namespace

MemoryGauge::MemoryGauge(pid_t pid, uint64_t limit_bytes, std::string root)
    : pid_(pid), limit_bytes_(limit_bytes), root_(std::move(root)) {
  FindCgroup();
}

void MemoryGauge::FindCgroup() {
  const std::string process = absl::StrCat(root_, "/proc/", pid_);
  const std::string text = ReadWholeFile(process + "/cgroup", 64 << 10);
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() < 3) continue;
    if (fields[1].empty()) v2_path_ = fields[2];
    if (HasController(fields[1], "memory")) v1_path_ = fields[2];
  }
  if (TryMounts(ReadWholeFile(root_ + "/proc/self/mountinfo"), root_, true)) return;
  TryMounts(ReadWholeFile(process + "/mountinfo"), process + "/root", false);
}

// A line of mountinfo: "ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS [TAGS] - TYPE SOURCE SUPER_OPTIONS".
bool MemoryGauge::TryMounts(const std::string& mountinfo, const std::string& mount_root, bool own_view) {
  for (absl::string_view line : absl::StrSplit(mountinfo, '\n', absl::SkipEmpty())) {
    std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    std::vector<absl::string_view> mount = absl::StrSplit(halves.first, ' '), type = absl::StrSplit(halves.second, ' ');
    if (mount.size() < 5 || type.size() < 3) continue;
    const bool v2 = type[0] == "cgroup2";
    if (!v2 && !(type[0] == "cgroup" && HasController(type[2], "memory"))) continue;
    const std::string top = absl::StrCat(mount_root, mount[4]);
    absl::string_view below;
    if (own_view) {
      // What we see of its path is seen from our own cgroup: "/../x" is none that our mount reaches.
      below = v2 ? v2_path_ : v1_path_;
      if (below.empty() || absl::StartsWith(below, "/..")) continue;
      if (mount[3] != "/" && !absl::ConsumePrefix(&below, mount[3])) continue;
      while (absl::ConsumeSuffix(&below, "/")) {
      }
    }
    std::string directory = absl::StrCat(top, below);
    // The root cgroup has no limit and no such file.
    const char* file = v2 ? "/memory.max" : "/memory.limit_in_bytes";
    if (!IsDirectory(directory) || access((directory + file).c_str(), R_OK) != 0) continue;
    is_v2_ = v2;
    levels_.clear();
    for (; directory.size() >= top.size(); directory.resize(directory.rfind('/'))) levels_.push_back(directory);
    return true;
  }
  return false;
}

MemoryUse MemoryGauge::Read() const {
  MemoryUse use;
  if (limit_bytes_ != 0) {
    use.used_bytes = ResidentBytesOf(pid_);
    use.limit_bytes = limit_bytes_;
    return use;
  }
  for (const std::string& level : levels_) {
    const uint64_t limit = ReadLimit(level + (is_v2_ ? "/memory.max" : "/memory.limit_in_bytes"));
    if (limit == kNoLimit || limit == 0) continue;
    const uint64_t usage = ReadLimit(level + (is_v2_ ? "/memory.current" : "/memory.usage_in_bytes"));
    if (usage == kNoLimit) continue;
    const uint64_t idle = ReadField(level + "/memory.stat", is_v2_ ? "inactive_file" : "total_inactive_file");
    const uint64_t used = usage > idle ? usage - idle : 0;
    // The larger share: a / b > c / d, without a division.
    if (use.limit_bytes == 0 || static_cast<double>(used) * static_cast<double>(use.limit_bytes) >
                                    static_cast<double>(use.used_bytes) * static_cast<double>(limit))
      use = {used, limit, true};
  }
  if (use.limit_bytes == 0) use.used_bytes = ResidentBytesOf(pid_);
  return use;
}

uint64_t MemoryGauge::OomKills() const {
  if (levels_.empty()) return 0;
  return ReadField(levels_[0] + (is_v2_ ? "/memory.events" : "/memory.oom_control"), "oom_kill");
}

}  // namespace cadastre
