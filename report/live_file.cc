#include "report/live_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "interposer/profile_format.h"
#include "report/clock.h"
#include "report/output_file.h"

namespace cadastre {
namespace {

constexpr uint32_t kLongestString = 128 << 10;  // an environment variable's largest size

bool ReadHeader(int descriptor, format::Header* header) {
  return pread(descriptor, header, sizeof(*header), 0) == static_cast<ssize_t>(sizeof(*header)) &&
         memcmp(header->magic, format::kMagic, sizeof(format::kMagic)) == 0 && format::IsKnownVersion(header->version);
}

std::string StringAt(int descriptor, const format::Header& header, uint32_t unit) {
  const format::Region& region = header.regions[format::kRegionStrings];
  format::StringHeader string;
  if (unit == 0 || unit > region.bytes / 8 || region.offset > INT64_MAX / 2) return "";
  const auto at = static_cast<off_t>(region.offset + 8 * static_cast<uint64_t>(unit));
  // In a packed profile only these first strings lie there.
  if (format::IsPackedVersion(header.version) && static_cast<uint64_t>(at) >= header.packed_offset) return "";
  if (pread(descriptor, &string, sizeof(string), at) != static_cast<ssize_t>(sizeof(string))) return "";
  if (string.length > kLongestString || string.length > region.bytes) return "";
  std::string text(string.length, '\0');
  if (pread(descriptor, text.data(), text.size(), at + static_cast<off_t>(sizeof(string))) !=
      static_cast<ssize_t>(text.size()))
    return "";
  return format::StringCheck(text.data(), text.size()) == string.check ? text : "";
}

// The log after a pause began or ended now.
format::ControlLog LogWithPause(format::ControlLog log, bool begins) {
  const uint64_t now = RealtimeNow();
  if (begins) {
    log.paused_since_realtime_ns = now;
    if (log.first_pause_realtime_ns == 0) log.first_pause_realtime_ns = now;
    return log;
  }
  if (log.paused_since_realtime_ns != 0 && now > log.paused_since_realtime_ns)
    log.paused_ns += now - log.paused_since_realtime_ns;
  log.paused_since_realtime_ns = 0;
  log.last_resume_realtime_ns = now;
  log.pauses++;
  return log;
}

}  // namespace

bool ReadIdentity(int descriptor, ProfileIdentity* identity) {
  format::Header header;
  if (!ReadHeader(descriptor, &header)) return false;
  identity->pid = header.pid;
  identity->pid_namespace = header.pid_namespace;
  identity->process_start_ticks = header.process_start_ticks;
  identity->start_realtime_ns = header.start_realtime_ns;
  identity->snapshot_realtime_ns = header.is_snapshot != 0 ? header.snapshot_begin_realtime_ns : 0;
  identity->saved = header.outcome.saved != 0;
  identity->awaited = header.outcome.awaited != 0;
  identity->is_copy = header.is_snapshot != 0 || header.regions[format::kRegionSymbols].bytes != 0;
  identity->exe = StringAt(descriptor, header, header.exe);
  identity->host = StringAt(descriptor, header, header.host);
  identity->options = StringAt(descriptor, header, header.options);
  return true;
}

void WriteMemoryNote(int descriptor, const format::MemoryNote& note) {
  (void)!pwrite(descriptor, &note, sizeof(note), offsetof(format::Header, memory_note));
}

absl::Status WriteControl(const std::string& path, const ControlChange& change) {
  int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return ErrnoStatus(errno, "cannot open", path);
  format::Header header;
  absl::Status status = absl::OkStatus();
  if (!ReadHeader(descriptor, &header) || header.version != format::kVersion) {
    status = absl::DataLossError(absl::StrCat(path, ": not a live profile of version ", format::kVersion));
  }
  // Word by word: the target may read between the two, and another `cadastre` may write the other one.
  auto put = [&](size_t offset, const void* word, size_t bytes) {
    if (!status.ok()) return;
    if (pwrite(descriptor, word, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
      status = ErrnoStatus(errno, "cannot write", path);
  };
  constexpr size_t kControl = offsetof(format::Header, control), kLog = offsetof(format::Header, control_log);
  const bool was_paused = header.control.paused != 0;
  if (change.paused.has_value() && *change.paused != was_paused) {
    uint32_t paused = *change.paused ? 1 : 0;
    put(kControl + offsetof(format::Control, paused), &paused, sizeof(paused));
    format::ControlLog log = LogWithPause(header.control_log, *change.paused);
    put(kLog, &log, offsetof(format::ControlLog, interval_changes));
  }
  if (change.interval_bytes.has_value()) {
    put(kControl + offsetof(format::Control, interval_bytes), &*change.interval_bytes, sizeof(uint64_t));
    uint32_t changes = header.control_log.interval_changes + 1;
    put(kLog + offsetof(format::ControlLog, interval_changes), &changes, sizeof(changes));
  }
  close(descriptor);
  return status;
}

absl::Status WriteOutcome(int descriptor, const ProcessOutcome& outcome) {
  format::Outcome record{};
  if (WIFSIGNALED(outcome.wait_status)) {
    record.end = format::kEndSignal;
    record.end_value = WTERMSIG(outcome.wait_status);
  } else {
    record.end = format::kEndStatus;
    record.end_value = WEXITSTATUS(outcome.wait_status);
  }
  record.end_realtime_ns = outcome.end_realtime_ns;
  record.peak_rss_bytes = outcome.peak_rss_bytes;
  record.saved = 1;  // reported, and where it lies was said: `keep=` may count it
  if (pwrite(descriptor, &record, sizeof(record), offsetof(format::Header, outcome)) !=
      static_cast<ssize_t>(sizeof(record))) {
    return absl::InternalError(absl::StrCat("cannot write how the process ended: ", strerror(errno)));
  }
  return absl::OkStatus();
}

void WriteReplaced(const std::string& path) {
  int descriptor = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  format::Header header;
  if (ReadHeader(descriptor, &header) && header.outcome.end == format::kEndUnknown) {
    uint32_t end = format::kEndExec;
    (void)!pwrite(descriptor, &end, sizeof(end), offsetof(format::Header, outcome) + offsetof(format::Outcome, end));
  }
  close(descriptor);
}

}  // namespace cadastre
