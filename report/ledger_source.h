// What the user typed for `cadastre rss` → the process's memory and, where it was recorded, its profile.
//
// A PID: the process as it is now, with its live profile if it has one; that it was never recorded is no error here. A
// profile: of a snapshot what it holds; of a process that runs, the process as it is now. Errors: a Status of one line:
// no such process, not ours to look at, or a profile without the facts. Thread-safety: reads files.
#ifndef CADASTRE_REPORT_LEDGER_SOURCE_H_
#define CADASTRE_REPORT_LEDGER_SOURCE_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "report/process_memory.h"
#include "symbolizer/profile.h"

namespace cadastre {

// The process that a profile stands for: `pid` if one was typed, else who wrote it and still runs; 0 = none.
pid_t ProcessOfProfile(const Profile& profile, pid_t pid);

// A process's number, where that is what was typed and no file has that name; 0 = it is not.
pid_t TypedPid(const std::string& argument);

// The process's memory for `profile`: the snapshot's own, or taken now.
absl::StatusOr<ProcessMemory> MemoryForProfile(const Profile& profile, pid_t pid, const CollectOptions& options);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LEDGER_SOURCE_H_
