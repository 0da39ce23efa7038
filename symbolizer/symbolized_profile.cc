// `cadastre symbolize`: a packed copy of a profile with a region of names behind it (symbol_block.h).
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "interposer/profile_format.h"
#include "symbolizer/packed_writer.h"
#include "symbolizer/profile_bytes.h"
#include "symbolizer/record_columns.h"
#include "symbolizer/symbol_block.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {
namespace {

uint64_t NowRealtimeNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// A file that appears under its name whole or not at all.
class NewFile {
 public:
  explicit NewFile(const std::string& path) : path_(path), temporary_(path + ".XXXXXX") {
    descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);  // mode 0600
    if (descriptor_ < 0) temporary_.clear(), error_ = errno;
  }
  ~NewFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  int descriptor() const { return descriptor_; }  // -1: see Commit
  absl::Status Commit() {
    if (error_ == 0 && fsync(descriptor_) != 0) error_ = errno;
    if (error_ == 0 && rename(temporary_.c_str(), path_.c_str()) != 0) error_ = errno;
    if (error_ != 0) return absl::InternalError(absl::StrCat(path_, ": cannot write: ", strerror(error_)));
    temporary_.clear();
    return absl::OkStatus();
  }

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  int error_ = 0;
};

// Whole records only: what is there of a region begins and ends at pages.
void AddRegion(uint32_t kind, const LoadedRegion& region, PackedWriter* to) {
  const uint64_t unit = std::max<uint64_t>(1, RecordBytesOf(kind));
  uint64_t done = 0;
  for (const Extent& extent : region.extents()) {
    const uint64_t begin = std::max(done, extent.begin / unit * unit);
    const uint64_t end = std::min((extent.end + unit - 1) / unit, region.bytes() / unit) * unit;
    if (begin >= end) continue;
    to->Add(kind, begin, region.data() + begin, end - begin);
    done = end;
  }
}

// Everything but names from an earlier run. As in report/profile_copy.h whatever names a record comes before it,
// because the process may still run.
void CopyRegions(ProfileBytes& from, const format::Header& header, PackedWriter* to) {
  auto load = [&](uint32_t kind) {
    const format::Region region = kind < header.region_count ? header.regions[kind] : format::Region{};
    return region.bytes == 0 ? LoadedRegion() : from.Load(region.offset, region.bytes);
  };
  const LoadedRegion strings = load(format::kRegionStrings);
  to->Begin(header, strings.data(), strings.bytes());
  for (uint32_t kind : {format::kRegionLive, format::kRegionSites, format::kRegionBuffers})
    AddRegion(kind, load(kind), to);
  const LoadedRegion frames = load(format::kRegionFrames);
  to->AddStacks(
      [&](uint64_t first, uint64_t count, uint64_t* words) {
        memcpy(words, frames.data() + first * sizeof(*words), count * sizeof(*words));
        return true;
      },
      frames.bytes() / sizeof(uint64_t));
  for (uint32_t kind : {format::kRegionProcess, format::kRegionMappings, format::kRegionThreads,
                        format::kRegionLibraries, format::kRegionStrings})
    AddRegion(kind, load(kind), to);
}

SymbolBlock ResolveAll(const Profile& profile, const SymbolizerOptions& options) {
  Symbolizer symbolizer(profile, options);
  SymbolBlock block;
  absl::flat_hash_set<uint64_t> seen;
  for (const Site& site : profile.sites) {
    for (uint64_t raw : site.frames) {
      // Java frames carry their names in the profile; the synthetic frame is named by whoever reads it.
      if (raw == kStackTableFullFrame || format::FrameTagOf(raw) == format::kFrameJava || !seen.insert(raw).second)
        continue;
      block.frames.emplace_back(raw, symbolizer.Resolve(raw));
    }
  }
  // What was wrong here is wrong for every later reader of the copy, who cannot see it any more.
  block.warnings = profile.warnings;
  block.warnings.insert(block.warnings.end(), symbolizer.warnings().begin(), symbolizer.warnings().end());
  return block;
}

uint64_t PageUp(uint64_t bytes) { return (bytes + format::kPageBytes - 1) / format::kPageBytes * format::kPageBytes; }

}  // namespace

absl::Status WriteSymbolizedProfile(const std::string& profile_path, const std::string& out_path,
                                    const SymbolizerOptions& options) {
  uint64_t begin_ns = NowRealtimeNs();
  absl::StatusOr<std::unique_ptr<ProfileBytes>> source = OpenProfileFile(profile_path);
  if (!source.ok()) return source.status();
  absl::StatusOr<Profile> profile = ReadProfile(profile_path);
  if (!profile.ok()) return profile.status();

  NewFile out(out_path);
  if (out.descriptor() < 0) return out.Commit();
  // Before the names are looked up, which takes time: the copy of a running process should be as old as what they were
  // looked up for.
  uint64_t size = (*source)->size();
  LoadedRegion first = (*source)->Load(0, sizeof(format::Header));
  if (first.bytes() < sizeof(format::Header)) {
    return absl::DataLossError(absl::StrCat(profile_path, ": cut while it was read"));
  }
  format::Header header;
  memcpy(&header, first.data(), sizeof(header));
  format::Region& symbols = header.regions[format::kRegionSymbols];
  uint64_t copied = size;
  // Names from an earlier run stand last and are replaced.
  if (header.region_count > format::kRegionSymbols && symbols.bytes > 0 && symbols.offset < size)
    copied = symbols.offset;
  // Regions that a cut file lacks stay cut: the names take their place in the file, so its size says nothing any more.
  header.is_incomplete = profile->incomplete.empty() ? 0 : 1;
  for (uint32_t kind = 0; kind < header.region_count && kind < format::kRegionCapacity; kind++) {
    if (kind == format::kRegionSymbols) continue;
    format::Region& region = header.regions[kind];
    uint64_t room = region.offset >= copied ? 0 : copied - region.offset;
    region.bytes = std::min(region.bytes, room);
    if (region.bytes == 0) region.offset = sizeof(header);
  }
  PackedWriter packed(out.descriptor(), out_path, Effort::kThorough);
  CopyRegions(**source, header, &packed);

  std::string block = WriteSymbolBlock(ResolveAll(*profile, options));
  symbols.offset = PageUp(copied);
  symbols.bytes = PageUp(block.size());
  symbols.record_bytes = 1;
  header.region_count = std::max<uint32_t>(header.region_count, format::kRegionSymbols + 1);
  header.file_bytes = symbols.offset + symbols.bytes;
  if (profile->end == EndState::kRunning && header.is_snapshot == 0) {
    header.is_snapshot = 1;
    header.snapshot_begin_realtime_ns = begin_ns;
    header.snapshot_end_realtime_ns = NowRealtimeNs();
  }
  if (profile->end == EndState::kExec) header.outcome.end = format::kEndExec;  // seen here, and nowhere else
  packed.Add(format::kRegionSymbols, 0, block.data(), block.size());
  if (absl::Status written = packed.Finish(&header); !written.ok()) return written;
  return out.Commit();
}

}  // namespace cadastre
