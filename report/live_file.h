// Writes into a live profile from outside: control words with their log, by whoever saw the process end its outcome,
// and by `cadastre run` how near to its memory limit it is. Nothing else is ever written there.
//
// Errors: a Status with the path. Thread-safety: each call opens or takes a descriptor; the target reads aligned words.
//
// Example: absl::Status status = WriteControl("/dev/shm/cadastre-pay-java-7-1.cad", {.paused = true});
#ifndef CADASTRE_REPORT_LIVE_FILE_H_
#define CADASTRE_REPORT_LIVE_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "interposer/profile_format.h"

namespace cadastre {

struct ControlChange {
  std::optional<bool> paused;
  std::optional<uint64_t> interval_bytes;
};
absl::Status WriteControl(const std::string& path, const ControlChange& change);

struct ProcessOutcome {
  int wait_status = 0;  // as wait4 gave it
  uint64_t end_realtime_ns = 0;
  uint64_t peak_rss_bytes = 0;  // ru_maxrss
};
absl::Status WriteOutcome(int descriptor, const ProcessOutcome& outcome);

// The program that wrote this profile has become another one by exec. Changes nothing if an end is written there
// already.
void WriteReplaced(const std::string& path);

// How near to its limit the process is now.
void WriteMemoryNote(int descriptor, const format::MemoryNote& note);

// Which process writes this profile, and what its header says of the end, from an open file. False: not a profile.
struct ProfileIdentity {
  uint32_t pid = 0;
  uint64_t pid_namespace = 0, process_start_ticks = 0;
  uint64_t start_realtime_ns = 0;
  uint64_t snapshot_realtime_ns = 0;    // when its copy began; 0 = no snapshot
  bool saved = false, awaited = false;  // as in format::Outcome
  bool is_copy = false;                 // a snapshot, or one with names: somebody made it from a profile
  std::string exe, host, options;       // "" where the file is damaged
};
bool ReadIdentity(int descriptor, ProfileIdentity* identity);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LIVE_FILE_H_
