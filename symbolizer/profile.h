// The model of a profile: what a profile file says, checked, in plain data. Everything after reading works on this.
//
// Units: bytes, nanoseconds since the process start (start_monotonic), counts as estimates (double).
// Errors: ReadProfile returns a Status whose message is one line with the path (and the offset, where there is one).
// A torn or truncated file is no error as long as the header is whole: what is whole is returned and `warnings` says
// what is not. Thread-safety: plain values; a const Profile may be read from many threads.
//
// Example:
//   absl::StatusOr<Profile> profile = ReadProfile("pay.cad");
//   if (!profile.ok()) return profile.status();
//   for (const LiveSample& sample : profile->live) total += sample.weight_bytes;
#ifndef CADASTRE_SYMBOLIZER_PROFILE_H_
#define CADASTRE_SYMBOLIZER_PROFILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "symbolizer/process_memory.h"

namespace cadastre {

// One resolved level of a site. A raw frame gives one Frame, or several where functions were inlined (innermost first).
struct Frame {
  std::string function;  // demangled; "libfoo.so+0x1234" when there is no symbol, "0x7f..." when there is no library
  std::string library;   // path as the target saw it; empty when not known
  std::string soname;    // of the library; empty when not known or when the file name begins with it
  std::string file;      // source file, empty when not known
  int line = 0;
  bool java = false;
  bool inlined = false;
  bool resolved = false;  // false: no symbol was found (a counted loss)
};

// The one raw frame of the site "[stack table full]" (Site::id == format::kSiteOverflow); no tag of the file format
// begins with 0xf.
inline constexpr uint64_t kStackTableFullFrame = 0xf000000000000001;

struct Library {
  std::string path;
  uint64_t bias = 0, start = 0, end = 0;
  uint64_t loaded_ns = 0, unloaded_ns = 0;  // unloaded 0 = still there
  std::string build_id;                     // lower-case hex; empty = none
  bool executable = false, vdso = false, cadastre = false;
};

inline constexpr uint32_t kNoSite = UINT32_MAX;

struct Thread {
  uint32_t tid = 0;
  uint64_t start_ns = 0;
  std::string name;  // whole where the profile has it, else the kernel's 15 bytes
  // Sites of kind kStack (indices into Profile::sites): who created the thread, and who had created the creator.
  uint32_t creation_site = kNoSite, creator_creation_site = kNoSite;
  uint64_t stack_low = 0, stack_high = 0;  // the block with its stack; 0 = not known
  bool ended = false;                      // false: not known to have ended
};

enum class SiteKind { kMalloc, kMmap, kStack };

struct Site {
  uint32_t id = 0;  // index in the file
  SiteKind kind = SiteKind::kMalloc;
  uint32_t flags = 0;            // format::SiteFlags
  std::vector<uint64_t> frames;  // raw frames (format::FrameTag), leaf first
  bool truncated = false;
  uint64_t samples = 0;
  double allocated_count = 0;
  uint64_t allocated_bytes = 0;
  double allocated_variance = 0;  // bytes^2
  uint64_t bytes_at_peak = 0;     // live bytes when the process as a whole was at its peak
  uint64_t own_peak_bytes = 0;
  uint32_t first_thread = 0;  // of its first sample: index into Profile::threads; 0 = not known
  // Sampled blocks that were freed; of them by threads that only free what a garbage collector found.
  uint32_t frees = 0, frees_by_reaper = 0;
};

struct LiveSample {
  uint32_t site = 0;    // index into Profile::sites
  uint32_t thread = 0;  // index into Profile::threads; 0 = not known
  uint64_t address = 0, size_bytes = 0, weight_bytes = 0, time_ns = 0;
  uint32_t context = 0;  // key of Profile::java_names: the method that was being compiled; 0 = none
};

// A range that the program had mapped. Ranges do not overlap; in order of address.
struct Mapping {
  uint64_t start = 0, end = 0;  // [start, end)
  uint64_t time_ns = 0;
  uint32_t site = kNoSite;  // index into Profile::sites
  uint32_t thread = 0;      // index into Profile::threads; 0 = not known
  uint32_t flags = 0;       // format::MappingFlags
};

enum class EndState { kRunning, kExit, kSignal, kExec, kLost };

struct Losses {
  uint64_t dropped_samples = 0, dropped_weight_bytes = 0, sites_overflowed = 0, truncated_stacks = 0, missed_frees = 0;
  uint64_t nested_skipped = 0, volume_dropped = 0, strings_full = 0, threads_full = 0, libraries_full = 0,
           interval_doublings = 0, mappings_full = 0, mapping_events_lost = 0;
  uint64_t torn_records = 0;       // found half-written by the reader
  uint64_t unresolved_frames = 0;  // filled by whoever resolves names
};

// The JVM in the process. walker: are Java frames in the stacks?
struct JvmFacts {
  uint32_t walker = 0;    // format::WalkerState
  uint32_t feature = 0;   // JDK 8, 11, 17, ...
  std::string version;    // libjvm's own text
  std::string missing;    // what the walker lacks
  std::string collector;  // "G1", "serial", ...
};

// Times when nothing was recorded because somebody wanted it so (`cadastre pause`, start=paused).
struct Pauses {
  bool now = false;                // at the end, at the snapshot, or now if running
  uint64_t since_realtime_ns = 0;  // of that one; 0 = not known
  uint32_t finished = 0;
  uint64_t first_realtime_ns = 0, last_resume_realtime_ns = 0;
  uint64_t finished_ns = 0;  // length of the finished ones together
};

// How near to its limit the process was when somebody looked at it last.
struct MemoryNote {
  uint64_t used_bytes = 0, limit_bytes = 0;  // of the cgroup, or of the process; limit 0 = not known
  uint64_t realtime_ns = 0;                  // when; 0 = never
  bool is_of_cgroup = false;
  uint32_t oom_kills = 0;  // in the cgroup since the process was first looked at
};

struct Profile {
  std::string path;
  uint32_t version = 0;
  uint32_t pid = 0;
  uint64_t pid_namespace = 0, process_start_ticks = 0;
  std::string exe, host, allocator, allocator_path, expect, options, labels;
  std::vector<std::string> command;
  uint64_t start_realtime_ns = 0, start_monotonic_ns = 0, last_sample_ns = 0;
  uint64_t duration_ns = 0;             // to the end, to the snapshot, or to now if running
  uint64_t interval_bytes = 0;          // at start
  uint64_t current_interval_bytes = 0;  // after `set` and after doublings; every sample's weight is that of its own
  uint32_t interval_changes = 0;        // by `set`
  bool interval_changed() const { return interval_changes > 0 || current_interval_bytes != interval_bytes; }
  Pauses pauses;
  uint64_t seed = 0, memory_bytes = 0, file_bytes = 0;
  bool exact() const { return interval_bytes == 1; }
  uint32_t run_state = 0, stop_reason = 0;  // format::RunState, format::StopReason
  EndState end = EndState::kLost;
  int end_value = 0;  // exit status or signal
  bool end_status_known = false;
  bool saved = false;    // somebody has reported it, and said where it lies
  bool awaited = false;  // it ran under `cadastre run`, which means to save it
  MemoryNote memory_note;
  bool is_snapshot = false;
  std::string label;
  uint64_t snapshot_begin_realtime_ns = 0, snapshot_end_realtime_ns = 0;
  uint64_t rss_bytes = 0, peak_rss_bytes = 0;  // 0 = not known
  uint64_t peak_total_bytes = 0, peak_ns = 0;
  uint64_t recorded_samples = 0, recorded_frees = 0;

  std::vector<Library> libraries;  // [0] is empty: indices are the file's
  std::vector<Thread> threads;     // [0] is "not known"
  std::vector<Site> sites;         // only whole ones; dense
  std::vector<LiveSample> live;    // in order of address
  std::vector<Mapping> mappings;
  std::vector<MemoryRange> own_memory;  // anonymous memory of Cadastre's own
  // Names that `cadastre symbolize` stored: raw frame -> frames. Empty in a live profile.
  std::vector<std::pair<uint64_t, std::vector<Frame>>> stored_symbols;
  // The process when the snapshot was taken; not set: no snapshot, or of a process that had ended.
  std::optional<ProcessMemory> process;
  JvmFacts jvm;
  // Java frames carry their name in the file; this maps a string index to it (filled for those in use). A newline and
  // the source file may follow the name.
  std::vector<std::pair<uint32_t, std::string>> java_names;

  Losses losses;
  // What makes the file less than what was recorded: "the file is cut at 200000 of 1388544 bytes"; empty = it is whole.
  std::string incomplete;
  std::vector<std::string> warnings;
};

// Reads a profile (live, dead, copied or symbolized) from PATH.
absl::StatusOr<Profile> ReadProfile(const std::string& path);

// The same from bytes in memory; `path` is used in messages and is looked up to decide whether the process runs.
absl::StatusOr<Profile> ParseProfile(const std::string& path, const char* bytes, uint64_t size);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PROFILE_H_
