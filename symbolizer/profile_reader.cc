// Reads a profile file into the model of profile.h. Nothing in the file is trusted: a record that does not make sense
// is left out and counted as torn, and what the file no longer holds is named in a warning.
//
// Order of reading matters for a file that is being written to: the target makes a site's frames, then the site, then
// its live record, so the reader takes them in the opposite order and finds everything that a record names. Sites come
// before buffers: a delta that is applied in between is then left out (it happened after we looked) and never counted
// twice.
#include <string.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "interposer/profile_format.h"
#include "symbolizer/packed_bytes.h"
#include "symbolizer/pending_deltas.h"
#include "symbolizer/process_block.h"
#include "symbolizer/profile.h"
#include "symbolizer/profile_bytes.h"
#include "symbolizer/profile_header.h"
#include "symbolizer/profile_records.h"
#include "symbolizer/symbol_block.h"
#include "symbolizer/utf8.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxStringBytes = 2 << 20;  // the kernel's limit for one argument is 128 KiB, for all of them 2 MiB
constexpr uint32_t kMaxSiteFrames = 4096;      // the interposer takes 256, Java frames included
constexpr uint64_t kMaxSampleBytes = 1ull << 56;  // more than a process can have
constexpr uint64_t kMaxTimeNs = 1ull << 58;       // nine years
constexpr uint64_t kMaxThreads = 1 << 22;         // the kernel's PID_MAX_LIMIT

class ProfileReader {
 public:
  ProfileReader(const std::string& path, ProfileBytes& source) : source_(source) { profile_.path = path; }

  absl::StatusOr<Profile> Read() {
    if (absl::Status status = LoadHeader(profile_.path, source_, &header_); !status.ok()) return status;
    TakeHeader(header_, &profile_);
    CheckRegions(source_, &header_, &profile_);
    ReadLive();
    ReadSites();
    ReadThreads();
    ReadMappings();
    ReadLibraries();
    ReadStrings();
    ReadSymbols();
    ReadProcess();
    PlaceLiveSamples();
    if (profile_.losses.torn_records > 0) {
      Warn(absl::StrCat(profile_.losses.torn_records, " records are half-written or damaged and are left out"));
    }
    return std::move(profile_);
  }

 private:
  void Warn(std::string what) { AddWarning(std::move(what), &profile_); }
  void CountTorn() { profile_.losses.torn_records++; }

  void ReadLive();
  void ReadSites();
  void ReadThreads();
  void ReadMappings();
  template <typename Record, typename Take>
  void ForEachSettled(format::RegionKind kind, Take take);
  uint32_t SiteOf(uint32_t index) const;  // in profile_.sites; kNoSite if it is not there
  void ReadLibraries();
  void ReadStrings();
  void ReadSymbols();
  void ReadProcess();
  void PlaceLiveSamples();
  bool TakeSite(uint64_t index, const format::SiteRecord& record, const LoadedRegion& frames);
  std::string StringAt(uint32_t index);
  LoadedRegion LoadRegion(format::RegionKind kind) {
    return source_.Load(header_.regions[kind].offset, header_.regions[kind].bytes);
  }

  ProfileBytes& source_;
  Profile profile_;
  format::Header header_{};
  absl::flat_hash_map<uint32_t, uint32_t> dense_site_;  // index in the file -> index in profile_.sites
  std::vector<format::LiveRecord> live_;                // whole ones, not placed yet
  LoadedRegion sites_;
  std::vector<std::pair<uint64_t, uint32_t>> whole_names_;  // index of a thread, string
  std::vector<uint32_t> library_paths_;
  LoadedRegion strings_;
  absl::flat_hash_map<uint32_t, std::string> string_cache_;
  uint64_t frames_taken_ = 0;
};

// Calls take(record) for each record that is whole. A slot that is reused while we copy it changes its generation:
// read, read again, compare.
template <typename Record, typename Take>
void ProfileReader::ForEachSettled(format::RegionKind kind, Take take) {
  LoadedRegion region = LoadRegion(kind);
  LoadedRegion again = source_.may_change() ? LoadRegion(kind) : region;
  ForEachRecord<Record>(region, [&](uint64_t index, const Record& record) {
    uint32_t state = record.state & format::kStateMask;
    if (state == format::kFree) return;
    if (index >= RecordCount<Record>(again)) return CountTorn();
    uint32_t state_after = RecordAt<Record>(again, index).state;
    if (state == format::kWriting) {
      if (state_after == record.state) CountTorn();  // else its writer was merely at work
      return;
    }
    if (state != format::kReady) return CountTorn();
    if (state_after == record.state) take(record);  // else it went while we looked: it is not live any more
  });
}

void ProfileReader::ReadLive() {
  ForEachSettled<format::LiveRecord>(format::kRegionLive, [&](const format::LiveRecord& record) {
    bool sane = record.address != 0 && record.address < kMaxAddress && record.size <= kMaxSampleBytes &&
                record.weight >= record.size && record.weight <= kMaxSampleBytes && record.time_ns <= kMaxTimeNs;
    sane ? live_.push_back(record) : CountTorn();
  });
}

bool ProfileReader::TakeSite(uint64_t index, const format::SiteRecord& record, const LoadedRegion& frames) {
  uint64_t words = frames.bytes() / 8;
  bool overflow = index == format::kSiteOverflow;
  if (record.state != format::kReady || index == 0 || index > UINT32_MAX || record.kind > format::kSiteStack ||
      record.frame_count > kMaxSiteFrames || record.frame_start > words ||
      record.frame_count > words - record.frame_start || (overflow && record.frame_count != 0) ||
      frames_taken_ + record.frame_count >
          words) {  // sites do not share frames, so all together have no more than there are
    return false;
  }
  Site site;
  site.id = static_cast<uint32_t>(index);
  site.kind = static_cast<SiteKind>(record.kind);
  site.flags = record.flags;
  site.truncated = (record.flags & format::kSiteTruncatedMask) != 0;
  site.frames.resize(record.frame_count);
  if (record.frame_count > 0)
    memcpy(site.frames.data(), frames.data() + record.frame_start * 8, record.frame_count * 8ull);
  for (uint64_t frame : site.frames) {
    if (frame == 0) return false;  // never written: the target died between the site and its frames, or a hole was cut
  }
  if (overflow) site.frames = {kStackTableFullFrame};
  if (site.frames.empty())
    site.frames = {format::MakeUnknownFrame(format::kFrameUnknown, 0)};  // a stack has a leaf, known or not
  frames_taken_ += record.frame_count;
  site.samples = record.samples;
  site.first_thread = record.first_thread;
  site.frees = record.frees;
  site.frees_by_reaper = std::min(record.frees_by_reaper, record.frees);
  site.allocated_count = static_cast<double>(record.count_fixed) / 65536;
  site.allocated_bytes = record.allocated_bytes;
  site.allocated_variance = record.allocated_variance;
  if (!std::isfinite(site.allocated_variance) || site.allocated_variance < 0) {
    site.allocated_variance = 0;
    CountTorn();
  }
  // Nothing changed here since the peak: what is live now was live then.
  int64_t at_peak = record.peak_epoch == header_.peak_epoch ? record.live_at_peak_bytes : record.live_bytes;
  site.bytes_at_peak = std::max<int64_t>(at_peak, 0);
  site.own_peak_bytes = std::max<int64_t>(record.own_peak_bytes, 0);
  dense_site_[site.id] = profile_.sites.size();
  profile_.sites.push_back(std::move(site));
  return true;
}

void ProfileReader::ReadSites() {
  sites_ = LoadRegion(format::kRegionSites);
  LoadedRegion buffers = LoadRegion(format::kRegionBuffers);  // after the sites: see the top of this file
  LoadedRegion frames = LoadRegion(format::kRegionFrames);
  ForEachRecord<format::SiteRecord>(sites_, [&](uint64_t index, const format::SiteRecord& record) {
    if (record.state != format::kFree && !TakeSite(index, record, frames)) CountTorn();
  });
  ForEachRecord<format::BufferRecord>(buffers, [&](uint64_t index, const format::BufferRecord& buffer) {
    format::SiteRecord site;
    profile_.recorded_samples += buffer.samples;
    profile_.recorded_frees += buffer.frees;
    profile_.losses.torn_records += ForEachPendingDelta(
        buffer,
        [&](uint32_t site_index) -> const format::SiteRecord* {
          if (!dense_site_.contains(site_index)) return nullptr;
          site = RecordAt<format::SiteRecord>(sites_, site_index);
          return &site;
        },
        [&](const format::Delta& delta) {
          Site& taken = profile_.sites[dense_site_[delta.site]];
          taken.samples += delta.samples;
          taken.allocated_count += static_cast<double>(delta.count_fixed) / 65536;
          taken.allocated_bytes += delta.bytes;
          taken.allocated_variance += delta.variance;
        });
  });
  sites_ = LoadedRegion();
}

void ProfileReader::ReadMappings() {
  ForEachSettled<format::MappingRecord>(format::kRegionMappings, [&](const format::MappingRecord& record) {
    if (record.start >= record.end || record.end > kMaxAddress || record.time_ns > kMaxTimeNs) return CountTorn();
    const uint32_t thread = record.thread < profile_.threads.size() ? record.thread : 0;
    profile_.mappings.push_back({record.start, record.end, record.time_ns, SiteOf(record.site), thread, record.flags});
  });
  std::sort(profile_.mappings.begin(), profile_.mappings.end(),
            [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
}

uint32_t ProfileReader::SiteOf(uint32_t index) const {
  auto site = dense_site_.find(index);
  return site == dense_site_.end() ? kNoSite : site->second;
}

void ProfileReader::ReadThreads() {
  profile_.threads.emplace_back();
  ForEachRecord<format::ThreadRecord>(LoadRegion(format::kRegionThreads),
                                      [&](uint64_t index, const format::ThreadRecord& record) {
                                        if (record.state == format::kFree || index == 0) return;
                                        if (record.state != format::kReady || index > kMaxThreads) return CountTorn();
                                        profile_.threads.resize(std::max<size_t>(profile_.threads.size(), index + 1));
                                        Thread& thread = profile_.threads[index];
                                        thread.tid = record.tid;
                                        thread.start_ns = record.start_ns;
                                        if (record.full_name != 0) whole_names_.emplace_back(index, record.full_name);
                                        thread.name.assign(record.name, strnlen(record.name, sizeof(record.name)));
                                        thread.creation_site = SiteOf(record.creation_site);
                                        thread.creator_creation_site = SiteOf(record.creator_creation_site);
                                        if (record.stack_low < record.stack_high) {
                                          thread.stack_low = record.stack_low;
                                          thread.stack_high = record.stack_high;
                                        }
                                        thread.ended = (record.flags & format::kThreadEnded) != 0;
                                      });
}

void ProfileReader::ReadLibraries() {
  profile_.libraries.emplace_back();
  library_paths_.push_back(0);
  LoadedRegion region = LoadRegion(format::kRegionLibraries);
  ForEachRecord<format::LibraryRecord>(region, [&](uint64_t index, const format::LibraryRecord& record) {
    if (record.state == format::kFree || index == 0) return;
    if (record.state != format::kReady || record.build_id_length > sizeof(record.build_id) ||
        index >= format::kFrameLibraryLimit) {
      return CountTorn();
    }
    profile_.libraries.resize(std::max<size_t>(profile_.libraries.size(), index + 1));
    library_paths_.resize(profile_.libraries.size());
    Library& library = profile_.libraries[index];
    library.bias = record.bias;
    library.start = record.start;
    library.end = record.end;
    library.loaded_ns = record.loaded_ns;
    library.unloaded_ns = record.unloaded_ns;
    library.build_id = absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(record.build_id), record.build_id_length));
    library.executable = (record.flags & format::kLibraryIsExecutable) != 0;
    library.vdso = (record.flags & format::kLibraryIsVdso) != 0;
    library.cadastre = (record.flags & format::kLibraryIsCadastre) != 0;
    library_paths_[index] = record.path;
  });
}

// "" for index 0 and for a string that is not whole (counted once).
std::string ProfileReader::StringAt(uint32_t index) {
  if (index == 0) return "";
  auto [entry, inserted] = string_cache_.try_emplace(index);
  if (!inserted) return entry->second;
  uint64_t offset = index * 8ull;
  format::StringHeader header{};
  if (offset + sizeof(header) <= strings_.bytes()) memcpy(&header, strings_.data() + offset, sizeof(header));
  const char* bytes = strings_.data() + offset + sizeof(header);
  if (header.length == 0 || header.length > kMaxStringBytes ||
      header.length > strings_.bytes() - offset - sizeof(header) ||
      format::StringCheck(bytes, header.length) != header.check) {
    CountTorn();
    return "";
  }
  return entry->second = std::string(bytes, header.length);
}

void ProfileReader::ReadStrings() {
  strings_ = LoadRegion(format::kRegionStrings);
  profile_.exe = StringAt(header_.exe);
  profile_.host = StringAt(header_.host);
  profile_.labels = StringAt(header_.labels);
  profile_.allocator = StringAt(header_.allocator);
  profile_.allocator_path = StringAt(header_.allocator_path);
  profile_.expect = StringAt(header_.expect);
  profile_.options = StringAt(header_.options);
  std::string command = StringAt(header_.command);
  while (!command.empty() && command.back() == '\0')
    command.pop_back();  // like /proc/PID/cmdline: each argument ends with one
  if (!command.empty()) profile_.command = absl::StrSplit(command, '\0');
  for (size_t i = 1; i < profile_.libraries.size(); i++) {
    Library& library = profile_.libraries[i];
    library.path = StringAt(library_paths_[i]);
    if (library.path.empty() && library.executable) library.path = profile_.exe;  // the loader has no name for it
  }

  for (const auto& [thread, name] : whole_names_) {
    if (std::string whole = StringAt(name); !whole.empty()) profile_.threads[thread].name = std::move(whole);
  }

  profile_.jvm.version = StringAt(header_.jvm.version);
  profile_.jvm.missing = StringAt(header_.jvm.missing);
  profile_.jvm.collector = StringAt(header_.jvm.collector);

  absl::flat_hash_set<uint32_t> seen;
  for (const Site& site : profile_.sites) {
    for (uint64_t frame : site.frames) {
      if (format::FrameTagOf(frame) != format::kFrameJava) continue;
      uint32_t index = format::JavaNameOf(frame);
      if (seen.insert(index).second) profile_.java_names.emplace_back(index, FromModifiedUtf8(StringAt(index)));
    }
  }
  for (const format::LiveRecord& record : live_) {
    if (record.context == 0 || !seen.insert(record.context).second) continue;
    profile_.java_names.emplace_back(record.context, FromModifiedUtf8(StringAt(record.context)));
  }
  std::sort(profile_.java_names.begin(), profile_.java_names.end());
}

void ProfileReader::ReadSymbols() {
  const format::Region& region = header_.regions[format::kRegionSymbols];
  if (region.bytes == 0) return;
  LoadedRegion bytes = source_.Load(region.offset, region.bytes);
  absl::StatusOr<SymbolBlock> block = ParseSymbolBlock(bytes.data(), bytes.bytes());
  if (!block.ok()) {
    return Warn(absl::StrCat("stored symbols at offset ", region.offset, " are not used: ", block.status().message()));
  }
  profile_.stored_symbols = std::move(block->frames);
  for (std::string& warning : block->warnings) Warn(std::move(warning));
}

void ProfileReader::ReadProcess() {
  const format::Region& region = header_.regions[format::kRegionProcess];
  if (region.bytes == 0) return;
  LoadedRegion bytes = source_.Load(region.offset, region.bytes);
  absl::StatusOr<ProcessMemory> process = ParseProcessBlock(bytes.data(), bytes.bytes());
  if (process.ok()) {
    profile_.process = *std::move(process);
  } else {
    Warn(absl::StrCat("facts about the process at offset ", region.offset,
                      " are not used: ", process.status().message()));
  }
}

// By address: in which slot of the file a sample lay means nothing. Two live records at one address: the older block's
// free was not seen. Mappings and blocks may begin at the same address.
void ProfileReader::PlaceLiveSamples() {
  std::vector<LiveSample>& live = profile_.live;
  live.reserve(live_.size());
  for (const format::LiveRecord& record : live_) {
    auto site = dense_site_.find(record.site);
    if (site == dense_site_.end()) continue;
    LiveSample sample;
    sample.site = site->second;
    sample.thread = record.thread < profile_.threads.size() ? record.thread : 0;
    sample.context = record.context;
    sample.address = record.address;
    sample.size_bytes = record.size;
    sample.weight_bytes = record.weight;
    sample.time_ns = record.time_ns;
    live.push_back(sample);
  }
  if (const uint64_t homeless = live_.size() - live.size(); homeless > 0) {
    profile_.losses.torn_records += homeless;
    Warn(absl::StrCat(homeless, " live samples belong to stacks that are not whole and are left out"));
  }
  auto place = [this](const LiveSample& sample) {
    return std::make_pair(sample.address, profile_.sites[sample.site].kind);
  };
  std::stable_sort(live.begin(), live.end(), [&](const LiveSample& a, const LiveSample& b) {
    return std::make_pair(place(a), a.time_ns) < std::make_pair(place(b), b.time_ns);
  });
  size_t kept = 0;
  for (const LiveSample& sample : live) {
    const bool again = kept > 0 && place(live[kept - 1]) == place(sample);
    if (again) profile_.losses.missed_frees++;
    live[again ? kept - 1 : kept++] = sample;
  }
  live.resize(kept);
}

absl::StatusOr<Profile> Read(const std::string& path, ProfileBytes& source) {
  return ProfileReader(path, source).Read();
}

}  // namespace

absl::StatusOr<Profile> ReadProfile(const std::string& path) {
  absl::StatusOr<std::unique_ptr<ProfileBytes>> source = OpenProfileFile(path);
  if (!source.ok()) return source.status();
  return Read(path, **source);
}

absl::StatusOr<Profile> ParseProfile(const std::string& path, const char* bytes, uint64_t size) {
  absl::StatusOr<std::unique_ptr<ProfileBytes>> source = Unpacked(path, ProfileBytesInMemory(bytes, size));
  if (!source.ok()) return source.status();
  return Read(path, **source);
}

}  // namespace cadastre
