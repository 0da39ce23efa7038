// Writes into a live profile from outside: control words with their log and, by whoever saw the process end, its
// outcome. Nothing else is ever written there.
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

// pid, pid namespace and start time of the process that writes this profile, from an open file. False: not a profile.
struct ProfileIdentity {
  uint32_t pid = 0;
  uint64_t pid_namespace = 0, process_start_ticks = 0;
};
bool ReadIdentity(int descriptor, ProfileIdentity* identity);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LIVE_FILE_H_
