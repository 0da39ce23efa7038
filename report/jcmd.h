// Asks a JVM through its own jcmd. The one place that starts one.
//
// The program's own answer, not ours: the JVM carries it out on a thread of its own. Errors: no JVM, no jcmd, no answer
// in time, in one line. Thread-safety: starts a process.
//
// Example: absl::StatusOr<std::string> text = AskJvm(4242, {"VM.native_memory", "summary", "scale=B"});
#ifndef CADASTRE_REPORT_JCMD_H_
#define CADASTRE_REPORT_JCMD_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cadastre {

// at_answer: called once, as soon as the JVM's own words begin to arrive.
absl::StatusOr<std::string> AskJvm(pid_t pid, const std::vector<std::string>& words,
                                   const std::function<void()>& at_answer = {});

// The level of native memory tracking that the process was started with, by its command line and environment:
// "summary", "detail", or empty: off or not known.
std::string NmtLevelOf(pid_t pid);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_JCMD_H_
