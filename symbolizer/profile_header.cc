#include "symbolizer/profile_header.h"

#include <string.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "symbolizer/end_state.h"
#include "symbolizer/profile_records.h"

namespace cadastre {
namespace {

struct RegionName {
  const char* records;
  uint32_t record_bytes;
};
constexpr RegionName kRegionNames[format::kRegionCount] = {
    {"strings", 8},
    {"libraries", sizeof(format::LibraryRecord)},
    {"threads", sizeof(format::ThreadRecord)},
    {"thread buffers", sizeof(format::BufferRecord)},
    {"sites", sizeof(format::SiteRecord)},
    {"stack frames", 8},
    {"live samples", sizeof(format::LiveRecord)},
    {"mappings", sizeof(format::MappingRecord)},
};

// As the target works it out (interposer/session.cc).
uint64_t CurrentInterval(const format::Header& header) {
  constexpr uint64_t kLargest = 1ull << 50;
  uint64_t wanted = header.control.interval_bytes;
  if (wanted != 0 && wanted <= kLargest) return wanted;
  uint64_t interval = header.interval_bytes;
  for (uint64_t i = 0; i < header.counters.interval_doublings && interval < kLargest; i++) interval *= 2;
  return interval;
}

}  // namespace

void AddWarning(std::string what, Profile* profile) {
  if (std::find(profile->warnings.begin(), profile->warnings.end(), what) != profile->warnings.end()) return;
  profile->warnings.push_back(std::move(what));
}

absl::Status LoadHeader(const std::string& path, ProfileBytes& source, format::Header* out) {
  auto error = [&](const std::string& what) { return absl::DataLossError(absl::StrCat(path, ": ", what)); };
  LoadedRegion first = source.Load(0, sizeof(format::Header));
  const uint64_t bytes = first.bytes();
  format::Header header{};
  if (bytes > 0) memcpy(&header, first.data(), bytes);
  if (bytes < sizeof(header.magic)) {
    return error(absl::StrCat("not a profile: it has ", bytes, " bytes, and a header has ", sizeof(header)));
  }
  if (memcmp(header.magic, format::kMagic, sizeof(format::kMagic)) != 0) {
    return error("not a profile: bad magic at offset 0");
  }
  if (bytes < sizeof(header)) {
    return error(absl::StrCat("the header is cut at offset ", bytes, " of ", sizeof(header)));
  }
  if (!format::IsKnownVersion(header.version)) {
    return error(absl::StrCat("version ", header.version, " at offset ", offsetof(format::Header, version),
                              " is not supported; this program reads versions ", format::kVersion, " and ",
                              format::kOldestPackedVersion, " to ", format::kPackedVersion));
  }
  if (header.header_bytes != sizeof(format::Header)) {
    return error(absl::StrCat("a header of ", header.header_bytes, " bytes at offset ",
                              offsetof(format::Header, header_bytes), "; version ", format::kVersion, " has ",
                              sizeof(format::Header)));
  }
  *out = header;
  return absl::OkStatus();
}

void TakeHeader(const format::Header& header, Profile* profile) {
  profile->version = header.version;
  profile->pid = header.pid;
  profile->pid_namespace = header.pid_namespace;
  profile->process_start_ticks = header.process_start_ticks;
  profile->start_realtime_ns = header.start_realtime_ns;
  profile->start_monotonic_ns = header.start_monotonic_ns;
  profile->last_sample_ns = header.last_sample_ns;
  profile->interval_bytes = header.interval_bytes;
  profile->seed = header.seed;
  profile->memory_bytes = header.memory_bytes;
  profile->file_bytes = header.file_bytes;
  profile->current_interval_bytes = CurrentInterval(header);
  profile->interval_changes = header.control_log.interval_changes;
  profile->run_state = header.run_state;
  if (header.run_state == format::kRunRecording || header.run_state == format::kRunPaused)
    profile->run_state = header.control.paused != 0 ? format::kRunPaused : format::kRunRecording;
  profile->pauses.now = header.control.paused != 0;
  profile->pauses.since_realtime_ns = header.control_log.paused_since_realtime_ns;
  profile->pauses.finished = header.control_log.pauses;
  profile->pauses.first_realtime_ns = header.control_log.first_pause_realtime_ns;
  profile->pauses.last_resume_realtime_ns = header.control_log.last_resume_realtime_ns;
  profile->pauses.finished_ns = header.control_log.paused_ns;
  profile->stop_reason = header.stop_reason;
  profile->is_snapshot = header.is_snapshot != 0;
  profile->label.assign(header.label, strnlen(header.label, sizeof(header.label)));
  profile->snapshot_begin_realtime_ns = header.snapshot_begin_realtime_ns;
  profile->snapshot_end_realtime_ns = header.snapshot_end_realtime_ns;
  profile->rss_bytes = header.snapshot_rss_bytes;
  profile->peak_rss_bytes = header.outcome.peak_rss_bytes;
  profile->saved = header.outcome.saved != 0;
  profile->awaited = header.outcome.awaited != 0;
  const format::MemoryNote& note = header.memory_note;
  profile->memory_note = {note.used_bytes, note.limit_bytes, note.realtime_ns, note.is_of_cgroup != 0, note.oom_kills};
  profile->peak_total_bytes = header.peak_total_bytes;
  profile->peak_ns = header.peak_ns;
  profile->jvm.walker = header.jvm.walker;
  profile->jvm.feature = header.jvm.feature;
  for (const format::OwnMemory& own : header.own_memory) {
    if (own.bytes > 0 && own.bytes < kMaxAddress && own.start < kMaxAddress)
      profile->own_memory.push_back({own.start, own.start + own.bytes});
  }
  const format::Counters& counters = header.counters;
  profile->recorded_samples = counters.samples;
  profile->recorded_frees = counters.frees;
  profile->losses.dropped_samples = counters.dropped_live_full;
  profile->losses.dropped_weight_bytes = counters.dropped_weight_bytes;
  profile->losses.sites_overflowed = counters.sites_overflowed;
  profile->losses.truncated_stacks = counters.stacks_truncated;
  profile->losses.missed_frees = counters.missed_frees;
  profile->losses.nested_skipped = counters.nested_skipped;
  profile->losses.volume_dropped = counters.dropped_buffer_full;
  profile->losses.strings_full = counters.strings_full;
  profile->losses.threads_full = counters.threads_full;
  profile->losses.libraries_full = counters.libraries_full;
  profile->losses.mappings_full = counters.mappings_full;
  profile->losses.mapping_events_lost = counters.mapping_events_lost;
  profile->losses.interval_doublings = counters.interval_doublings;
  EndDecision decision = DecideEnd(header, profile->path);
  profile->end = decision.end;
  profile->end_value = decision.value;
  profile->end_status_known = decision.status_known;
  profile->duration_ns = DurationNs(header, decision.end);
}

void CheckRegions(const ProfileBytes& source, format::Header* header, Profile* profile) {
  auto warn = [&](std::string what) { AddWarning(std::move(what), profile); };
  // Whole regions or their ends are not there: no sum over what is left means anything.
  auto incomplete = [&](std::string what) {
    if (profile->incomplete.empty()) profile->incomplete = std::move(what);
  };
  uint64_t size = source.size();
  if (header->region_count < format::kRegionCount || header->region_count > format::kRegionCapacity) {
    warn(absl::StrCat("the header names ", header->region_count, " regions; a profile has ", format::kRegionCount,
                      " or more"));
    header->region_count = format::kRegionCount;
  }
  if (header->is_incomplete != 0) incomplete("the file was made from one that is cut or damaged");
  if (const std::string damage = source.damage(); !damage.empty()) {
    incomplete(damage);
    warn(absl::StrCat(damage, ": what was in the others is missing"));
  }
  std::vector<std::string> missing;
  for (uint32_t kind = 0; kind <= format::kRegionProcess; kind++) {
    format::Region& region = header->regions[kind];
    bool known = kind < format::kRegionCount;
    const char* name = known                            ? kRegionNames[kind].records
                       : kind == format::kRegionSymbols ? "stored symbols"
                                                        : "facts about the process";
    if (!known && header->region_count <= kind) region = {};
    if (region.bytes == 0) continue;
    bool overlaps = false;
    for (uint32_t other = 0; other < kind; other++) {
      const format::Region& earlier = header->regions[other];
      overlaps |= region.offset < earlier.offset + earlier.bytes && earlier.offset < region.offset + region.bytes;
    }
    if (region.offset < sizeof(format::Header) || region.offset % format::kPageBytes != 0 ||
        region.offset > INT64_MAX || region.bytes > INT64_MAX - region.offset || overlaps ||
        (known && region.record_bytes != kRegionNames[kind].record_bytes)) {
      warn(absl::StrCat("the header's entry for ", name, " at offset ",
                        offsetof(format::Header, regions) + kind * sizeof(format::Region),
                        " is damaged: none can be read"));
      if (known) incomplete(absl::StrCat("the file's ", name, " cannot be read"));
      region = {};
      continue;
    }
    if (region.offset + region.bytes <= size) continue;
    if (known) {
      uint64_t whole = region.offset >= size ? 0 : (size - region.offset) / region.record_bytes;
      missing.push_back(absl::StrCat(name, " from record ", whole, " on"));
    } else {
      missing.push_back(name);
    }
  }
  if (size < header->file_bytes || !missing.empty()) {
    incomplete(absl::StrCat("the file is cut at ", size, " of ", header->file_bytes, " bytes"));
    warn(absl::StrCat("file is cut at ", size, " of ", header->file_bytes, " bytes: ",
                      missing.empty() ? "nothing that this program reads is" : absl::StrJoin(missing, ", ") + " are",
                      " missing"));
  }
}

}  // namespace cadastre
