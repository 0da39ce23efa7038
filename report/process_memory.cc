#include "report/process_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/area_names.h"
#include "report/clock.h"
#include "report/jcmd.h"
#include "report/memory_cgroup.h"
#include "report/nmt.h"
#include "report/process_info.h"
#include "report/smaps.h"
#include "report/target_library.h"
#include "report/target_memory.h"

namespace cadastre {
namespace {

constexpr size_t kMaxSmapsBytes = 1 << 30;
// A shadow memory or an ambitious reservation: which of its pages are resident would take gigabytes to ask.
constexpr uint64_t kMaxPagemapArea = 16ull << 30;
constexpr size_t kMaxResidentRanges = 4 << 20;
constexpr uint64_t kPagePresent = 1ull << 63;
// Of a file or of shared memory; mapped by this process alone. Neither is said of the page of zeroes, and of few
// others: what a child after fork shares.
constexpr uint64_t kPageIsSomebodys = 1ull << 61 | 1ull << 56;

// The whole file, or why not.
absl::StatusOr<std::string> ReadProcFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", strerror(errno)));
  std::string text;
  auto buffer = std::make_unique<char[]>(1 << 20);
  ssize_t got = 0;
  while (text.size() < kMaxSmapsBytes &&
         ((got = read(descriptor, buffer.get(), 1 << 20)) > 0 || (got < 0 && errno == EINTR))) {
    if (got > 0) text.append(buffer.get(), static_cast<size_t>(got));
  }
  const int error = got < 0 ? errno : 0;
  close(descriptor);
  if (error != 0) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", strerror(error)));
  return text;
}

// Of anonymous areas alone: a file's pages all belong to one row.
bool WantsPages(const MemoryArea& area) {
  return (IsAnonymous(area) || area.name[0] == '[') && area.rss_bytes > 0 && area.end - area.start <= kMaxPagemapArea;
}

class ResidentPages {
 public:
  ResidentPages(pid_t pid, std::vector<MemoryRange>* ranges)
      : descriptor_(open(absl::StrCat("/proc/", pid, "/pagemap").c_str(), O_RDONLY | O_CLOEXEC)), ranges_(*ranges) {}
  ~ResidentPages() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  ResidentPages(const ResidentPages&) = delete;
  ResidentPages& operator=(const ResidentPages&) = delete;

  // False: not known.
  bool Add(const MemoryArea& area) {
    if (area.rss_bytes == area.end - area.start) {
      Append(area.start, area.end, &ranges_);
      return true;
    }
    std::vector<MemoryRange> present, somebodys;
    if (!Find(area, kPagePresent, &present)) return false;
    // A page of zeroes that was only read is present and none of Rss's.
    const uint64_t all = Sum(present);
    if (all > area.rss_bytes && Find(area, kPageIsSomebodys, &somebodys)) {
      const uint64_t some = Sum(somebodys);
      const uint64_t off = some > area.rss_bytes ? some - area.rss_bytes : area.rss_bytes - some;
      if (off < all - area.rss_bytes) present = std::move(somebodys);
    }
    for (const MemoryRange& range : present) Append(range.start, range.end, &ranges_);
    return true;
  }

 private:
  // The area's pages that are present and have one of `bits`. False: not known, or too many.
  bool Find(const MemoryArea& area, uint64_t bits, std::vector<MemoryRange>* found) {
    for (uint64_t at = area.start; at < area.end;) {
      const uint64_t count = std::min<uint64_t>((area.end - at) / kPage, entries_.size());
      const ssize_t wanted = static_cast<ssize_t>(count * 8);
      if (descriptor_ < 0 || ranges_.size() + found->size() > kMaxResidentRanges ||
          pread(descriptor_, entries_.data(), count * 8, static_cast<off_t>(at / kPage * 8)) != wanted)
        return false;
      for (uint64_t i = 0; i < count; i++) {
        const bool is_one = (entries_[i] & kPagePresent) != 0 && (entries_[i] & bits) != 0;
        if (is_one) Append(at + i * kPage, at + (i + 1) * kPage, found);
      }
      at += count * kPage;
    }
    return true;
  }

  static uint64_t Sum(const std::vector<MemoryRange>& ranges) {
    uint64_t sum = 0;
    for (const MemoryRange& range : ranges) sum += range.end - range.start;
    return sum;
  }

  static void Append(uint64_t start, uint64_t end, std::vector<MemoryRange>* ranges) {
    if (!ranges->empty() && ranges->back().end == start) {
      ranges->back().end = end;
    } else {
      ranges->push_back({start, end});
    }
  }

  int descriptor_;
  std::vector<MemoryRange>& ranges_;
  std::vector<uint64_t> entries_ = std::vector<uint64_t>(1 << 16);
};

uint64_t KiloBytes(absl::string_view text) {
  uint64_t kib = 0;
  return absl::ConsumeSuffix(&text, " kB") && absl::SimpleAtoi(text, &kib) ? kib * 1024 : 0;
}

// Where a thread that waits in the kernel has its stack; 0 = it runs, or may not be looked at.
uint64_t StackPointerOf(const std::string& task) {
  // number, six arguments, sp, pc; or -1, sp, pc; or "running"
  const std::string text = ReadWholeFile(absl::StrCat(task, "/syscall"));
  std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  uint64_t pointer = 0;
  if (words.size() < 3) return 0;
  absl::string_view word = words[words.size() - 2];
  return absl::ConsumePrefix(&word, "0x") && absl::SimpleHexAtoi(word, &pointer) ? pointer : 0;
}

const MemoryArea* AreaAt(const std::vector<MemoryArea>& areas, uint64_t address) {
  auto after = std::upper_bound(areas.begin(), areas.end(), address,
                                [](uint64_t wanted, const MemoryArea& area) { return wanted < area.start; });
  if (after == areas.begin()) return nullptr;
  const MemoryArea& area = *std::prev(after);
  return address < area.end ? &area : nullptr;
}

// Where the program began: its first thread may wait elsewhere, in a coroutine.
const MemoryArea* MainStackOf(const std::vector<MemoryArea>& areas) {
  auto found = std::find_if(areas.begin(), areas.end(), [](const MemoryArea& area) { return area.name == "[stack]"; });
  return found == areas.end() ? nullptr : &*found;
}

void CollectThreads(pid_t pid, ProcessMemory* memory) {
  const std::string directory = absl::StrCat("/proc/", pid, "/task");
  DIR* tasks = opendir(directory.c_str());
  if (tasks == nullptr) return;
  while (dirent* entry = readdir(tasks)) {
    uint32_t tid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &tid)) continue;
    const std::string task = absl::StrCat(directory, "/", entry->d_name);
    const std::string status = ReadWholeFile(absl::StrCat(task, "/status"));
    if (status.empty()) continue;  // it has just ended
    LiveThread thread;
    // As the target's pid namespace numbers it, which is what its profile has.
    const uint32_t inner = InnermostId(status);
    thread.tid = inner != 0 ? inner : tid;
    thread.name = std::string(StatusField(status, "Name"));
    const MemoryArea* area = AreaAt(memory->areas, StackPointerOf(task));
    if (tid == static_cast<uint32_t>(pid)) area = MainStackOf(memory->areas);
    if (area != nullptr && (area->name.empty() || area->name == "[stack]") && area->writable)
      memory->known.push_back({area->start, area->end, KnownUse::kThreadStack, thread.tid, ""});
    memory->threads.push_back(std::move(thread));
  }
  closedir(tasks);
  std::sort(memory->threads.begin(), memory->threads.end(),
            [](const LiveThread& a, const LiveThread& b) { return a.tid < b.tid; });
}

void TakeNmt(const NmtAnswer& answer, const CollectOptions& options, ProcessMemory* memory) {
  if (options.nmt_problem != nullptr) *options.nmt_problem = answer.problem;
  absl::StatusOr<NmtReport> report = ParseNmt(answer.text);
  if (!report.ok()) return;
  memory->nmt = answer.text;
  memory->nmt_level = answer.level;
  if (options.records_monotonic_ns != 0)
    memory->nmt_apart_ns = static_cast<int64_t>(options.records_monotonic_ns - answer.begun_monotonic_ns);
  for (const NmtRange& range : report->ranges)
    memory->known.push_back({range.start, range.end, KnownUse::kNmt, 0, range.category});
}

absl::StatusOr<std::string> AskNmtOnce(pid_t pid, const std::string& level, const std::function<void()>& at_answer) {
  absl::StatusOr<std::string> text = AskJvm(pid, {"VM.native_memory", level, "scale=B"}, at_answer);
  if (!text.ok() || ParseNmt(*text).ok()) return text;
  // "4242:" and then the JVM's own words.
  absl::string_view words = *text;
  if (size_t line = words.find('\n'); line != absl::string_view::npos) words.remove_prefix(line + 1);
  return absl::FailedPreconditionError(absl::StripAsciiWhitespace(words.substr(0, words.find('\n'))));
}

}  // namespace

NmtAnswer AskNmt(pid_t pid, NmtWanted wanted, const std::function<void()>& at_answer) {
  NmtAnswer answer;
  if (wanted == NmtWanted::kNo) return answer;
  answer.level = wanted == NmtWanted::kSummary ? "summary" : wanted == NmtWanted::kDetail ? "detail" : NmtLevelOf(pid);
  if (answer.level.empty()) return answer;
  // A detail report needs memory itself, megabytes of symbol tables the first time and a buffer until it is read, and
  // none of that is in its own figures. So they are asked for again when it is over.
  absl::StatusOr<std::string> detail = std::string();
  if (answer.level == "detail") detail = AskNmtOnce(pid, "detail", nullptr);
  absl::StatusOr<std::string> text = detail;
  if (detail.ok()) {
    text = AskNmtOnce(pid, "summary", [&] {
      answer.begun_monotonic_ns = ClockNow(CLOCK_MONOTONIC);
      if (at_answer) at_answer();
    });
  }
  if (!text.ok()) {
    answer.problem = std::string(text.status().message());
  } else {
    answer.text = answer.level == "detail" ? NmtWithSummary(*detail, *text) : *std::move(text);
  }
  return answer;
}

absl::StatusOr<ProcessMemory> CollectProcessMemory(pid_t pid, const CollectOptions& options) {
  const pid_t task = TaskWithMemory(pid);
  const std::string path = absl::StrCat("/proc/", task, "/smaps");
  absl::StatusOr<std::string> text = ReadProcFile(path);
  if (!text.ok()) return text.status();
  const uint64_t now = RealtimeNow();
  absl::StatusOr<std::vector<MemoryArea>> areas = ParseSmaps(*text, path);
  if (!areas.ok()) return areas.status();
  if (areas->empty())
    return absl::NotFoundError(absl::StrCat("process ", pid, " has no memory: it has ended, or is a kernel thread"));
  ProcessMemory memory;
  memory.taken_realtime_ns = now;
  memory.pid = static_cast<uint32_t>(pid);
  memory.areas = *std::move(areas);
  if (options.smaps_text != nullptr) *options.smaps_text = *std::move(text);
  ResidentPages pages(task, &memory.resident);
  for (MemoryArea& area : memory.areas) {
    if (WantsPages(area)) area.pages_known = pages.Add(area);
  }
  char exe[4096];
  const ssize_t length = readlink(absl::StrCat("/proc/", task, "/exe").c_str(), exe, sizeof(exe));
  if (length > 0) memory.exe.assign(exe, static_cast<size_t>(length));
  const std::string status = ReadWholeFile(absl::StrCat("/proc/", task, "/status"));
  memory.status_rss_bytes = KiloBytes(StatusField(status, "VmRSS"));
  memory.page_table_bytes = KiloBytes(StatusField(status, "VmPTE"));
  const MemoryCgroup cgroup(pid);
  if (!cgroup.levels().empty()) memory.cgroup = cgroup.Read(cgroup.levels()[0]).value_or(CgroupMemory{});
  CollectThreads(pid, &memory);
  const TargetMemory target(task);
  for (auto* find : {FindLibraries, FindAllocatorHeaps, FindJvmRanges}) {
    std::vector<KnownRange> found = find(target, memory.areas);
    memory.known.insert(memory.known.end(), found.begin(), found.end());
  }
  memory.allocator = ReadAllocatorState(target, memory.areas);
  TakeNmt(options.nmt_answer != nullptr ? *options.nmt_answer : AskNmt(pid, options.nmt), options, &memory);
  std::stable_sort(memory.known.begin(), memory.known.end(),
                   [](const KnownRange& a, const KnownRange& b) { return a.start < b.start; });
  return memory;
}

}  // namespace cadastre
