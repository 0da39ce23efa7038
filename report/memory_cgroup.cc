#include "report/memory_cgroup.h"

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

// cgroup v1 has no word for "none": it says the largest multiple of a page.
constexpr uint64_t kLargestLimit = 1ull << 60;
constexpr size_t kMaxFieldsBytes = 64 << 10;

std::optional<uint64_t> ReadBytes(const std::string& path) {
  uint64_t bytes = 0;
  const std::string text = ReadWholeFile(path, 64);
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(text), &bytes)) return std::nullopt;  // "max", or not there
  return bytes < kLargestLimit ? std::optional<uint64_t>(bytes) : std::nullopt;
}

// The number behind `name` in "name 12\nother 3\n"; 0 if it is not there.
uint64_t FieldIn(absl::string_view text, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    uint64_t value = 0;
    if (absl::ConsumePrefix(&line, name) && absl::ConsumePrefix(&line, " ") && absl::SimpleAtoi(line, &value))
      return value;
  }
  return 0;
}

bool HasController(absl::string_view list, absl::string_view name) {
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    if (item == name) return true;
  }
  return false;
}

}  // namespace

MemoryCgroup::MemoryCgroup(pid_t pid, std::string root) {
  const std::string process = absl::StrCat(root, "/proc/", pid);
  const std::string text = ReadWholeFile(process + "/cgroup", 64 << 10);
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() < 3) continue;
    if (fields[1].empty()) v2_path_ = fields[2];
    if (HasController(fields[1], "memory")) v1_path_ = fields[2];
  }
  if (TryMounts(ReadWholeFile(root + "/proc/self/mountinfo"), root, true)) return;
  TryMounts(ReadWholeFile(process + "/mountinfo"), process + "/root", false);
}

// A line of mountinfo: "ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS [TAGS] - TYPE SOURCE SUPER_OPTIONS".
bool MemoryCgroup::TryMounts(const std::string& mountinfo, const std::string& mount_root, bool own_view) {
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

std::optional<CgroupMemory> MemoryCgroup::Read(const std::string& level) const {
  const std::optional<uint64_t> usage = ReadBytes(level + (is_v2_ ? "/memory.current" : "/memory.usage_in_bytes"));
  if (!usage.has_value()) return std::nullopt;
  const std::string stat = ReadWholeFile(level + "/memory.stat", kMaxFieldsBytes);
  CgroupMemory memory;
  memory.current_bytes = *usage;
  memory.limit_bytes = ReadBytes(level + (is_v2_ ? "/memory.max" : "/memory.limit_in_bytes")).value_or(0);
  memory.inactive_file_bytes = FieldIn(stat, is_v2_ ? "inactive_file" : "total_inactive_file");
  memory.anonymous_bytes = FieldIn(stat, is_v2_ ? "anon" : "total_rss");
  memory.file_bytes = FieldIn(stat, is_v2_ ? "file" : "total_cache");
  return memory;
}

uint64_t MemoryCgroup::OomKills() const {
  if (levels_.empty()) return 0;
  const std::string path = levels_[0] + (is_v2_ ? "/memory.events" : "/memory.oom_control");
  return FieldIn(ReadWholeFile(path, kMaxFieldsBytes), "oom_kill");
}

}  // namespace cadastre
