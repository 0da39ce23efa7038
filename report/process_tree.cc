#include "report/process_tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "report/process_info.h"

namespace cadastre {
namespace {

constexpr size_t kNamesShown = 6;

// Children of all threads of a process (CONFIG_PROC_CHILDREN).
std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = absl::StrCat("/proc/", pid, "/task");
  DIR* listing = opendir(tasks.c_str());
  if (listing == nullptr) return children;
  while (dirent* entry = readdir(listing)) {
    if (entry->d_name[0] == '.') continue;
    const std::string text = ReadWholeFile(absl::StrCat(tasks, "/", entry->d_name, "/children"));
    for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
      int child = 0;
      if (absl::SimpleAtoi(word, &child)) children.push_back(child);
    }
  }
  closedir(listing);
  return children;
}

// A container may have been given its host's /proc: what it says is of other processes.
bool ProcIsOurs() {
  char self[32];
  const ssize_t length = readlink("/proc/self", self, sizeof(self));
  return length > 0 && absl::string_view(self, static_cast<size_t>(length)) == absl::StrCat(getpid());
}

}  // namespace

std::string ProcessTree::Note(pid_t pid, const std::string& parent) {
  const uint64_t ticks = StartTicksOf(pid);
  const std::string name = ticks != 0 ? ProgramOf(pid) : "";
  // Ours before its exec: a program of this moment only.
  if (name.empty() || name == "cadastre") return "";
  const SeenProgram program{pid, ticks, name};
  auto forked = forked_.find(pid);
  if (forked != forked_.end() && (forked->second.start_ticks != ticks || forked->second.name != name)) {
    if (forked->second.start_ticks == ticks) seen_.erase(forked->second);
    forked_.erase(forked);
  }
  const bool is_new = seen_.insert(program).second && known_[pid] != ticks;
  if (is_new && name == parent) forked_[pid] = program;
  known_[pid] = ticks;
  return name;
}

void ProcessTree::Descend(pid_t pid, const std::string& parent, std::set<pid_t>* visited) {
  if (!visited->insert(pid).second) return;
  const std::string name = Note(pid, parent);
  for (pid_t child : ChildrenOf(pid)) Descend(child, name, visited);
}

void ProcessTree::Look() {
  if (!ProcIsOurs()) return;
  std::erase_if(known_, [](const auto& entry) { return StartTicksOf(entry.first) != entry.second; });
  std::set<pid_t> visited;
  const std::map<pid_t, uint64_t> known = known_;
  Descend(root_, "", &visited);
  for (const auto& [pid, ticks] : known) Descend(pid, "", &visited);
}

// A process whose first thread has ended has no file to be named by, only the kernel's 15 characters.
static bool IsRecorded(const SeenProgram& program, const std::set<std::pair<pid_t, std::string>>& recorded) {
  constexpr size_t kKernelNameBytes = 15;
  for (auto entry = recorded.lower_bound({program.pid, ""}); entry != recorded.end() && entry->first == program.pid;
       ++entry) {
    if (entry->second == program.name) return true;
    if (program.name.size() == kKernelNameBytes && absl::StartsWith(entry->second, program.name)) return true;
  }
  return false;
}

std::string NotRecordedText(const std::set<SeenProgram>& seen,
                            const std::set<std::pair<pid_t, std::string>>& recorded) {
  std::map<std::string, size_t> names;
  size_t count = 0;
  for (const SeenProgram& program : seen) {
    if (IsRecorded(program, recorded)) continue;
    names[program.name]++;
    count++;
  }
  if (count == 0) return "";
  std::vector<std::pair<std::string, size_t>> sorted(names.begin(), names.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = absl::StrCat(count, count == 1 ? " process" : " processes", " not recorded: ");
  for (size_t i = 0; i < sorted.size() && i < kNamesShown; i++) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", sorted[i].first);
    if (sorted[i].second > 1) absl::StrAppend(&text, " (", sorted[i].second, ")");
  }
  if (sorted.size() > kNamesShown) absl::StrAppend(&text, " and ", sorted.size() - kNamesShown, " more names");
  return text;
}

}  // namespace cadastre
