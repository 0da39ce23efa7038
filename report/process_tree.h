// The processes that a program starts, as far as one sees them by looking now and then: who lives for less than that is
// missed. Which of them were not recorded, by name.
//
// A program that a process becomes by exec counts as one more, but not what a forked process was until then: its
// parent's program. Errors: none. Thread-safety: one thread; reads /proc.
//
// Example:
//   ProcessTree tree(child);
//   tree.Look();  // now and then
//   std::string names = NotRecordedText(tree.seen(), recorded);
#ifndef CADASTRE_REPORT_PROCESS_TREE_H_
#define CADASTRE_REPORT_PROCESS_TREE_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cadastre {

// One program of one process.
struct SeenProgram {
  pid_t pid = 0;  // as we know it
  uint64_t start_ticks = 0;
  std::string name;  // of its executable
  bool operator<(const SeenProgram& other) const {
    return std::tie(pid, start_ticks, name) < std::tie(other.pid, other.start_ticks, other.name);
  }
};

class ProcessTree {
 public:
  explicit ProcessTree(pid_t root) : root_(root) {}

  void Look();
  // One that has ended and was not waited for yet: its name can still be read.
  void NoteEnding(pid_t pid) { Note(pid, ""); }
  const std::set<SeenProgram>& seen() const { return seen_; }

 private:
  // Returns the name of its program.
  std::string Note(pid_t pid, const std::string& parent);
  void Descend(pid_t pid, const std::string& parent, std::set<pid_t>* visited);

  pid_t root_;
  std::map<pid_t, uint64_t>
      known_;  // alive at the last look, with its start: their children are ours, whoever has them
  std::set<SeenProgram> seen_;
  std::map<pid_t, SeenProgram> forked_;  // with its parent's program: as such it has no name of its own yet
};

// "3 processes not recorded: sh, sleep (2)"; empty if every one was. `recorded` holds (pid, program).
std::string NotRecordedText(const std::set<SeenProgram>& seen, const std::set<std::pair<pid_t, std::string>>& recorded);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PROCESS_TREE_H_
