// `cadastre symbolize`: a copy of a profile with a region of names behind it (symbol_block.h).
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
#include "symbolizer/profile_bytes.h"
#include "symbolizer/symbol_block.h"
#include "symbolizer/symbolizer.h"

namespace cadastre {
namespace {

constexpr uint64_t kCopyBytes = 8 << 20;

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

  void WriteAt(uint64_t offset, const char* bytes, uint64_t count) {
    while (count > 0 && error_ == 0) {
      ssize_t done = pwrite(descriptor_, bytes, count, static_cast<off_t>(offset));
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) {
        error_ = done < 0 ? errno : ENOSPC;
        return;
      }
      offset += done;
      bytes += done;
      count -= done;
    }
  }
  void SetSize(uint64_t size) {
    if (error_ == 0 && ftruncate(descriptor_, static_cast<off_t>(size)) != 0) error_ = errno;
  }
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

bool IsAllZeros(const char* bytes, uint64_t count) {
  return count == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0);
}

// Copies what is not a hole; pages of zeros become holes.
void CopySparse(ProfileBytes& from, uint64_t end, NewFile* to) {
  for (uint64_t at = 0; at < end; at += kCopyBytes) {
    LoadedRegion part = from.Load(at, std::min(kCopyBytes, end - at));
    for (const Extent& extent : part.extents()) {
      for (uint64_t page = extent.begin; page < extent.end; page += format::kPageBytes) {
        uint64_t count = std::min(format::kPageBytes, extent.end - page);
        if (!IsAllZeros(part.data() + page, count)) to->WriteAt(at + page, part.data() + page, count);
      }
    }
  }
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
  CopySparse(**source, copied, &out);

  std::string block = WriteSymbolBlock(ResolveAll(*profile, options));
  symbols.offset = PageUp(copied);
  symbols.bytes = PageUp(block.size());
  symbols.record_bytes = 1;
  header.region_count = std::max<uint32_t>(header.region_count, format::kRegionSymbols + 1);
  // Regions that a cut file lacks stay cut: the names take their place in the file, so its size says nothing any more.
  header.is_incomplete = profile->incomplete.empty() ? 0 : 1;
  for (uint32_t kind = 0; kind < header.region_count && kind < format::kRegionCapacity; kind++) {
    if (kind == format::kRegionSymbols) continue;
    format::Region& region = header.regions[kind];
    uint64_t room = region.offset >= copied ? 0 : copied - region.offset;
    region.bytes = std::min(region.bytes, room);
    if (region.bytes == 0) region.offset = sizeof(header);
  }
  header.file_bytes = symbols.offset + symbols.bytes;
  if (profile->end == EndState::kRunning && header.is_snapshot == 0) {
    header.is_snapshot = 1;
    header.snapshot_begin_realtime_ns = begin_ns;
    header.snapshot_end_realtime_ns = NowRealtimeNs();
  }
  if (profile->end == EndState::kExec) header.outcome.end = format::kEndExec;  // seen here, and nowhere else
  out.WriteAt(symbols.offset, block.data(), block.size());
  out.WriteAt(0, reinterpret_cast<const char*>(&header), sizeof(header));
  out.SetSize(header.file_bytes);
  return out.Commit();
}

}  // namespace cadastre
