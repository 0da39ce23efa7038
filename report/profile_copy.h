// Copies a live profile from outside, without a signal and without the target's help.
//
// The copy is exact per record and fuzzy over its window, whose length is stored in it. How, in this order:
//   0. If native memory tracking is asked for (CopyOptions::nmt), the JVM is asked; the copy begins when its answer
//   does, so that the two can be compared.
//   1. Live samples, first of all: whatever they name (sites, frames, threads, strings) was written before them and is
//   still there afterwards.
//      Each record is read twice; it is whole if both reads show the same ready state (it carries a generation) and the
//      same fields. One that changed under us is read again, and left out if it never comes to rest.
//   2. Sites and thread buffers together: a delta may move from a buffer into its site in between. Buffers are read
//   before and after; if a tail
//      moved, both are read again, a few times at most.
//   3. Everything else, which only grows; whatever names a record comes before it.
//   4. Of a running process: what the RSS ledger needs, taken now (report/process_memory), as a region behind the
//   others (format::kRegionProcess). Threads that have ended meanwhile are marked so.
//   5. The header, with the window, the label and the resident size put in.
// The copy is packed (symbolizer/packed_profile.h): it costs and measures what is used, not `memory=`. A copy of a
// packed profile has the same blocks. (A damaged file is copied as it is.) Memory: what
// PackedWriter takes, and what threads and their buffers do. Units: bytes. Errors: a Status with the path; nothing
// half-written is left. Thread-safety: not thread-safe.
//
// Example:
//   absl::Status status = CopyProfile("/dev/shm/x.cad", "/dev/shm/x.cad@before", {.label = "before", .pid = 4242});
#ifndef CADASTRE_REPORT_PROFILE_COPY_H_
#define CADASTRE_REPORT_PROFILE_COPY_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "interposer/profile_format.h"
#include "report/process_memory.h"
#include "symbolizer/packed_writer.h"

namespace cadastre {

struct CopyOptions {
  std::string label;        // of a snapshot; a final copy has none
  bool is_snapshot = true;  // false: a copy of a finished profile, which stays what it is
  pid_t pid = 0;            // for the resident size and what the RSS ledger needs; 0 = not known, or it has ended
  NmtWanted nmt = NmtWanted::kIfOn;
  std::string* nmt_problem = nullptr;  // receives why there is no NMT report although it was wanted
  bool overwrite = false;
  Effort effort = Effort::kMiddling;  // kThorough for what has ended and nobody waits for; a snapshot is of a moment
  // Of a final copy of a profile that a dead process left:
  bool saved = false;         // it is marked as saved
  bool replaced = false;      // the process became another program
  format::MemoryNote note{};  // put in if it has a time
};

absl::Status CopyProfile(const std::string& from, const std::string& to, const CopyOptions& options);
absl::Status CopyProfile(int from_descriptor, const std::string& from_name, const std::string& to,
                         const CopyOptions& options);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_PROFILE_COPY_H_
