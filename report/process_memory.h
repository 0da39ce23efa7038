// Takes what the RSS ledger needs from a running process: smaps and which pages are resident, threads, the cgroup, what
// a look into its memory says, and NMT's report where there is one.
//
// No signal, no ptrace stop. Only NMT's report needs the target: it is asked for through jcmd, and only where the JVM
// was started with it (or `nmt` says so). smaps is read in one pass, each line of it as the kernel has it at that
// moment. Units: bytes. Errors: what is missing is empty in the result; only smaps must be readable. Thread-safety:
// reads files, may start jcmd.
//
// Example: absl::StatusOr<ProcessMemory> memory = CollectProcessMemory(4242, {});
#ifndef CADASTRE_REPORT_PROCESS_MEMORY_H_
#define CADASTRE_REPORT_PROCESS_MEMORY_H_

#include <sys/types.h>

#include <string>

#include "absl/status/statusor.h"
#include "symbolizer/process_memory.h"

namespace cadastre {

enum class NmtWanted { kIfOn, kSummary, kDetail, kNo };

// HotSpot's own report. The JVM takes a good part of a second for it: who compares it with a profile asks first and
// reads the profile then.
struct NmtAnswer {
  std::string text;     // empty: not asked, or no answer
  std::string level;    // "summary" or "detail"
  std::string problem;  // why there is none although it was wanted
};
NmtAnswer AskNmt(pid_t pid, NmtWanted wanted);

struct CollectOptions {
  NmtWanted nmt = NmtWanted::kIfOn;
  const NmtAnswer* nmt_answer = nullptr;  // it has been asked for already: instead of `nmt`
  std::string* smaps_text = nullptr;      // receives smaps as it was read
  std::string* nmt_problem = nullptr;     // receives why there is no NMT report although it was wanted
};

absl::StatusOr<ProcessMemory> CollectProcessMemory(pid_t pid, const CollectOptions& options);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PROCESS_MEMORY_H_
