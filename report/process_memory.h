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

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "symbolizer/process_memory.h"

namespace cadastre {

enum class NmtWanted { kIfOn, kSummary, kDetail, kNo };

// HotSpot's own report.
struct NmtAnswer {
  std::string text;                 // empty: not asked, or no answer
  std::string level;                // "summary" or "detail"
  std::string problem;              // why there is none although it was wanted
  uint64_t begun_monotonic_ns = 0;  // when the answer began; 0 = it did not
};

// at_answer: called when the answer begins, of a detail report that of the summary which is asked for after it. jcmd
// needs a good part of a second before that and some of one after it, so who compares the report with a profile reads
// the profile then, and else when this returns.
NmtAnswer AskNmt(pid_t pid, NmtWanted wanted, const std::function<void()>& at_answer = {});

struct CollectOptions {
  NmtWanted nmt = NmtWanted::kIfOn;
  const NmtAnswer* nmt_answer = nullptr;  // it has been asked for already: instead of `nmt`
  uint64_t records_monotonic_ns = 0;      // when the profile's live samples were read; 0 = not known
  std::string* smaps_text = nullptr;      // receives smaps as it was read
  std::string* nmt_problem = nullptr;     // receives why there is no NMT report although it was wanted
};

absl::StatusOr<ProcessMemory> CollectProcessMemory(pid_t pid, const CollectOptions& options);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PROCESS_MEMORY_H_
