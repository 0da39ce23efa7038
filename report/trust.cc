#include "report/trust.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "interposer/profile_format.h"
#include "report/estimate.h"
#include "report/function_name.h"

namespace cadastre {
namespace {

// Libraries are listed in the loader's search order, so what stands before libcadastre and has a malloc takes every
// call. The target names its provider; a known allocator in front is told also where the target said nothing.
std::string AllocatorBeforeCadastre(const Profile& profile) {
  std::string before;
  for (const Library& library : profile.libraries) {
    if (library.cadastre) return before;
    bool provider =
        !library.path.empty() && (library.path == profile.allocator_path || IsAllocatorLibrary(library.path));
    if (before.empty() && provider) before = std::string(FileName(library.path));
  }
  return "";
}

// "10:20:05 UTC", with the date where the run is longer than a day.
std::string Clock(const Profile& profile, uint64_t realtime_ns) {
  bool long_run = profile.duration_ns > 86'400'000'000'000ull;
  return absl::FormatTime(long_run ? "%Y-%m-%d %H:%M UTC" : "%H:%M:%S UTC",
                          absl::FromUnixNanos(static_cast<int64_t>(realtime_ns)), absl::UTCTimeZone());
}

// "paused since 10:20:05 UTC"; empty if recording goes on.
std::string PausedSince(const Profile& profile) {
  const Pauses& pauses = profile.pauses;
  if (!pauses.now) return "";
  return pauses.since_realtime_ns == 0 ? "paused"
                                       : absl::StrCat("paused since ", Clock(profile, pauses.since_realtime_ns));
}

// What pauses took away: one line for the one that lasts, one for those that are over.
void AddPauseWarnings(const Profile& profile, std::vector<std::string>* warnings) {
  constexpr char kLost[] =
      ": what was allocated then has no owner and is not counted; in RSS it is part of the retention";
  const Pauses& pauses = profile.pauses;
  auto length = [](uint64_t nanoseconds) { return FormatDuration(static_cast<double>(nanoseconds) / 1e9); };
  if (pauses.finished == 1) {
    warnings->push_back(absl::StrCat("recording was paused from ", Clock(profile, pauses.first_realtime_ns), " to ",
                                     Clock(profile, pauses.last_resume_realtime_ns), " (", length(pauses.finished_ns),
                                     ")", kLost));
  } else if (pauses.finished > 1) {
    warnings->push_back(absl::StrCat(
        "recording was paused ", pauses.finished, " times between ", Clock(profile, pauses.first_realtime_ns), " and ",
        Clock(profile, pauses.last_resume_realtime_ns), ", ", length(pauses.finished_ns), " in all", kLost));
  }
  if (!pauses.now) return;
  uint64_t end = profile.start_realtime_ns + profile.duration_ns;
  bool lasts = profile.end == EndState::kRunning && !profile.is_snapshot;
  std::string line = absl::StrCat("recording ", lasts ? "is " : "was ", PausedSince(profile));
  if (pauses.since_realtime_ns != 0 && end > pauses.since_realtime_ns)
    absl::StrAppend(&line, " (", length(end - pauses.since_realtime_ns), ")");
  if (lasts) {
    absl::StrAppend(&line, ": what is allocated before `cadastre resume ", profile.pid,
                    "` has no owner and is not counted; in RSS it is part of the retention");
  } else {
    absl::StrAppend(&line, kLost);
  }
  warnings->push_back(line);
}

std::string Times(uint64_t count) { return count == 1 ? "once" : absl::StrCat(count, " times"); }

std::string IntervalsText(const Profile& profile) {
  return absl::StrCat(": ", FormatInterval(profile.interval_bytes), " at first, ",
                      FormatInterval(profile.current_interval_bytes), " at last; each sample counts by its own");
}

}  // namespace

bool IsAllocatorLibrary(const std::string& path) {
  absl::string_view name = FileName(path);
  if (name.find(".so") == absl::string_view::npos) return false;
  for (absl::string_view known : {"libjemalloc", "libtcmalloc", "libmimalloc", "libsnmalloc", "librpmalloc", "libhoard",
                                  "libtbbmalloc", "libscudo", "libsupermalloc", "libltalloc"}) {
    if (absl::StartsWith(name, known)) return true;
  }
  return false;
}

double LossShare(const Profile& profile) {
  // A torn record may have been a sample, or the stack of many.
  double lost =
      static_cast<double>(profile.losses.dropped_samples + profile.losses.volume_dropped + profile.losses.torn_records);
  double all = lost + static_cast<double>(profile.recorded_samples);
  double by_count = all > 0 ? lost / all : 0;
  // Late samples, after the interval was doubled, stand for more bytes each than early ones.
  double kept_bytes = 0;
  for (const Site& site : profile.sites) kept_bytes += static_cast<double>(site.allocated_bytes);
  double lost_bytes = static_cast<double>(profile.losses.dropped_weight_bytes);
  double by_bytes = lost_bytes > 0 ? lost_bytes / std::max(kept_bytes, lost_bytes) : 0;
  return std::max(by_count, by_bytes);
}

Trust JudgeProfile(const Profile& profile, uint64_t min_samples) {
  Trust trust;
  std::vector<std::string> reasons;
  std::string before = AllocatorBeforeCadastre(profile);
  std::string cause;
  if (!before.empty()) cause = absl::StrCat(before, " serves malloc before Cadastre");
  if (!profile.expect.empty() && cause.empty() && !absl::StrContains(profile.allocator, profile.expect)) {
    cause = absl::StrCat("malloc is served by ", profile.allocator.empty() ? "an unknown library" : profile.allocator,
                         ", expected ", profile.expect);
  }
  uint64_t samples = profile.recorded_samples;
  bool few = samples == 0 || (!profile.exact() && samples < min_samples);
  if (!profile.incomplete.empty()) {
    trust.usable = false;
    trust.reason = absl::StrCat("unusable: ", profile.incomplete);
  } else if (few || !cause.empty()) {
    std::string reason = absl::StrCat("unusable: ", FormatCount(static_cast<double>(samples)),
                                      samples == 1 ? " sample in " : " samples in ",
                                      FormatDuration(static_cast<double>(profile.duration_ns) / 1e9));
    if (!cause.empty()) {
      absl::StrAppend(&reason, "; ", cause);
    } else if (profile.pauses.now) {
      absl::StrAppend(&reason, "; ", PausedSince(profile));
    } else if (samples > 0) {
      absl::StrAppend(&reason, ", fewer than ", FormatCount(static_cast<double>(min_samples)),
                      "; a smaller interval= or a longer run gives more");
    }
    trust.usable = false;
    trust.reason = reason;
  } else if (LossShare(profile) > kMaxLossShare) {
    const Losses& lost = profile.losses;
    trust.usable = false;
    trust.reason =
        absl::StrCat("unusable: ", FormatShare(100 * LossShare(profile), 0), " of the samples were lost (",
                     FormatCount(static_cast<double>(lost.dropped_samples + lost.volume_dropped + lost.torn_records)),
                     lost.torn_records > lost.dropped_samples + lost.volume_dropped
                         ? "): its records are damaged"
                         : "); give it more room with memory= or a larger interval=");
  }
  if (trust.usable && static_cast<double>(profile.losses.sites_overflowed) >
                          kMaxLossShare * static_cast<double>(profile.recorded_samples)) {
    trust.usable = false;
    trust.reason = absl::StrCat(
        "unusable: ", FormatCount(static_cast<double>(profile.losses.sites_overflowed)), " of ",
        FormatCount(static_cast<double>(profile.recorded_samples)),
        " samples have no stack: the stack table was full; give it more room with memory= or a larger interval=");
  }
  AddPauseWarnings(profile, &trust.warnings);
  const Losses& losses = profile.losses;
  if (trust.usable && losses.dropped_samples > 0) {
    trust.warnings.push_back(absl::StrCat(FormatCount(static_cast<double>(losses.dropped_samples)), " samples (",
                                          FormatBytes(static_cast<double>(losses.dropped_weight_bytes)),
                                          ") were dropped: totals are at least what is shown"));
  }
  // "12 THINGS that went wrong", where there are any.
  auto warn_of = [&](uint64_t count, absl::string_view what) {
    if (count > 0) trust.warnings.push_back(absl::StrCat(FormatCount(static_cast<double>(count)), what));
  };
  warn_of(losses.sites_overflowed,
          " samples came after the stack table was full and are charged to [stack table full]");
  if (losses.interval_doublings > 0) {
    trust.warnings.push_back(absl::StrCat("the interval was doubled ", Times(losses.interval_doublings),
                                          " because memory= ran short", IntervalsText(profile)));
  }
  if (profile.interval_changes > 0) {
    trust.warnings.push_back(absl::StrCat("the interval was changed ", Times(profile.interval_changes), " while it ran",
                                          IntervalsText(profile)));
  }
  warn_of(losses.missed_frees,
          " frees were not seen (code that is bound past Cadastre: RTLD_DEEPBIND, another namespace, an allocator of"
          " its own); their blocks counted as live until the address was used again");
  warn_of(losses.mappings_full, " mappings had no room in the profile and are not shown: memory= gives it more");
  warn_of(losses.mapping_events_lost,
          " changes of mappings came too fast to be recorded: what is mapped is shown as it was before them");
  if (profile.jvm.walker == format::kWalkerUnusable) {
    trust.warnings.push_back(absl::StrCat("no Java frames: libjvm.so ", profile.jvm.version,
                                          " does not say where to find ", profile.jvm.missing));
  }
  for (const std::string& warning : profile.warnings) trust.warnings.push_back(warning);
  return trust;
}

}  // namespace cadastre
