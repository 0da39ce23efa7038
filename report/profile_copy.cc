#include "report/profile_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "interposer/profile_format.h"
#include "report/clock.h"
#include "report/output_file.h"
#include "report/process_info.h"
#include "symbolizer/process_block.h"

namespace cadastre {
namespace {

constexpr int kLiveReads = 4;  // a record that is reused faster than that is busy: its block lives for microseconds
constexpr int kBufferReads = 16;
constexpr uint64_t kChunkBytes = 1 << 20;
constexpr uint64_t kSlackBytes = 64 * 1024;  // 585 sites; a hole as long as none is written
constexpr size_t kThreadsAtOnce = 4096;
constexpr char kZeroPage[format::kPageBytes] = {};

// pread that goes on; false: the file ended or an error (errno).
bool ReadFully(int descriptor, void* to, uint64_t bytes, uint64_t offset) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    ssize_t got = pread(descriptor, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      if (got == 0) errno = EIO;
      return false;
    }
    at += got;
    bytes -= got;
    offset += got;
  }
  return true;
}

bool WriteFully(int descriptor, const void* from, uint64_t bytes, uint64_t offset) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    ssize_t put = pwrite(descriptor, at, bytes, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    bytes -= put;
    offset += put;
  }
  return true;
}

uint64_t PageUp(uint64_t bytes) { return (bytes + format::kPageBytes - 1) / format::kPageBytes * format::kPageBytes; }

class Copier {
 public:
  Copier(int from, int to, const std::string& from_name, const std::string& to_name)
      : from_(from), to_(to), from_name_(from_name), to_name_(to_name) {}

  absl::Status Run(const CopyOptions& options) {
    uint64_t begin = RealtimeNow();
    struct stat status;
    if (fstat(from_, &status) != 0) return ErrnoStatus(errno, "cannot read", from_name_);
    file_bytes_ = static_cast<uint64_t>(status.st_size);
    if (file_bytes_ < sizeof(header_) || !ReadFully(from_, &header_, sizeof(header_), 0) ||
        memcmp(header_.magic, format::kMagic, sizeof(format::kMagic)) != 0) {
      return absl::DataLossError(absl::StrCat(from_name_, ": not a profile"));
    }
    if (header_.version != format::kVersion) {
      return absl::DataLossError(absl::StrCat(from_name_, ": version ", header_.version, " is not supported"));
    }
    packs_ = RegionsAreSound();
    if (absl::Status copied = CopyLive(Place(format::kRegionLive)); !copied.ok()) return copied;
    if (absl::Status copied = CopySitesAndBuffers(); !copied.ok()) return copied;
    if (absl::Status copied = packs_ ? CopyOtherRegions() : CopyRest(); !copied.ok()) return copied;
    if (!packs_) end_ = file_bytes_;
    if (ftruncate(to_, static_cast<off_t>(end_)) != 0) return WriteError();
    if (!ReadFully(from_, &header_, sizeof(header_), 0)) return ReadError();
    if (packs_) {
      std::copy(std::begin(placed_), std::end(placed_), header_.regions);
      header_.file_bytes = end_;
    }
    if (options.is_snapshot && options.pid > 0) {
      if (absl::Status written = WriteProcess(options); !written.ok()) return written;
    }
    return WriteHeader(options, begin);
  }

 private:
  absl::Status ReadError() const { return ErrnoStatus(errno, "cannot read", from_name_); }
  absl::Status WriteError() const { return ErrnoStatus(errno, "cannot write", to_name_); }

  // Empty if it does not lie in the file: a damaged header costs that region, not the copy.
  format::Region RegionOf(format::RegionKind kind) const {
    format::Region region = header_.regions[kind];
    if (region.offset < sizeof(header_) || region.offset > file_bytes_) return {file_bytes_, 0, 0, 0};
    region.bytes = std::min(region.bytes, file_bytes_ - region.offset);
    return region;
  }

  // Regions that lie apart, page by page, in a file that has its whole length: then they can be moved together.
  bool RegionsAreSound() const {
    if (file_bytes_ < header_.file_bytes || header_.region_count > format::kRegionCapacity) return false;
    std::vector<format::Region> regions(header_.regions, header_.regions + header_.region_count);
    std::erase_if(regions, [](const format::Region& region) { return region.bytes == 0; });
    std::sort(regions.begin(), regions.end(),
              [](const format::Region& a, const format::Region& b) { return a.offset < b.offset; });
    uint64_t at = sizeof(header_);
    for (const format::Region& region : regions) {
      if (region.offset < at || region.offset % format::kPageBytes != 0 || region.offset > file_bytes_ ||
          region.bytes > file_bytes_ - region.offset)
        return false;
      at = region.offset + region.bytes;
    }
    return true;
  }

  // Where the last page that is not zero ends, from the region's start. The target makes pages present in pieces, so
  // data as the file system sees it goes on a little behind that.
  uint64_t UsedBytes(const format::Region& region) const {
    const uint64_t end = region.offset + region.bytes;
    uint64_t at = region.offset, used = region.offset;
    while (at < end) {
      off_t data = lseek(from_, static_cast<off_t>(at), SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;
      if (data >= 0 && static_cast<uint64_t>(data) >= end) break;
      off_t hole = data < 0 ? -1 : lseek(from_, data, SEEK_HOLE);
      used = at = hole < 0 ? end : std::min<uint64_t>(end, hole);
    }
    char page[format::kPageBytes];
    while (used > region.offset) {
      const uint64_t begin = (used - 1) / format::kPageBytes * format::kPageBytes;
      if (!ReadFully(from_, page, used - begin, begin) || memcmp(page, kZeroPage, used - begin) != 0) break;
      used = begin;
    }
    return used - region.offset;
  }

  // The region as it is to be copied, from its place in the original. Packed: only the used part and `slack` bytes, and
  // the copy has it next.
  format::Region Place(format::RegionKind kind, uint64_t slack = 0) {
    format::Region region = RegionOf(kind);
    shift_ = 0;
    if (!packs_) return region;
    const uint64_t used =
        (UsedBytes(region) + slack + format::kPageBytes - 1) / format::kPageBytes * format::kPageBytes;
    // A block of names, and one of the process, is read by its own length.
    if (kind != format::kRegionSymbols && kind != format::kRegionProcess) region.bytes = std::min(region.bytes, used);
    shift_ = end_ - region.offset;
    placed_[kind] = {end_, region.bytes, region.record_bytes, region.reserved};
    // A symbol block ends where its bytes end, not at a page.
    end_ += (region.bytes + format::kPageBytes - 1) / format::kPageBytes * format::kPageBytes;
    return region;
  }

  // Calls visit(offset, bytes) for the data in [begin, end), at most kChunkBytes at a time, multiples of `unit` from
  // begin.
  template <typename Visit>
  absl::Status ForEachDataChunk(uint64_t begin, uint64_t end, uint64_t unit, Visit visit) {
    uint64_t chunk = std::max(unit, kChunkBytes / unit * unit);
    uint64_t at = begin;
    while (at < end) {
      off_t data = lseek(from_, static_cast<off_t>(at), SEEK_DATA);
      if (data < 0) {
        if (errno == ENXIO) return absl::OkStatus();  // nothing but holes from here on
        if (errno != EINVAL) return ReadError();
        data = static_cast<off_t>(at);  // no holes on this file system
      }
      if (static_cast<uint64_t>(data) >= end) return absl::OkStatus();
      off_t hole = lseek(from_, data, SEEK_HOLE);
      uint64_t stop = hole < 0 ? end : std::min<uint64_t>(end, hole);
      uint64_t first = std::max(at, begin + (static_cast<uint64_t>(data) - begin) / unit * unit);
      stop = std::min(end, begin + (stop - begin + unit - 1) / unit * unit);
      for (; first < stop; first += chunk) {
        absl::Status visited = visit(first, std::min(chunk, stop - first));
        if (!visited.ok()) return visited;
      }
      at = std::max(stop, at + 1);
    }
    return absl::OkStatus();
  }

  // Pages of zeros are left as holes. `offset` is that in the original.
  bool WriteSparse(const char* bytes, uint64_t count, uint64_t offset) {
    for (uint64_t at = 0; at < count;) {
      uint64_t step = std::min(count - at, format::kPageBytes - (offset + at) % format::kPageBytes);
      if (memcmp(bytes + at, kZeroPage, step) != 0 && !WriteFully(to_, bytes + at, step, offset + shift_ + at))
        return false;
      at += step;
    }
    return true;
  }

  absl::Status CopyLive(const format::Region& region) {
    using format::LiveRecord;
    return ForEachDataChunk(
        region.offset, region.offset + region.bytes, sizeof(LiveRecord), [&](uint64_t offset, uint64_t bytes) {
          size_t count = bytes / sizeof(LiveRecord);
          std::vector<LiveRecord> first(count), second(count);
          std::vector<char> settled(count, 0);
          if (!ReadFully(from_, first.data(), count * sizeof(LiveRecord), offset)) return ReadError();
          for (int attempt = 0; attempt < kLiveReads; attempt++) {
            if (!ReadFully(from_, second.data(), count * sizeof(LiveRecord), offset)) return ReadError();
            bool busy = false;
            for (size_t i = 0; i < count; i++) {
              if (settled[i]) continue;
              uint32_t state = first[i].state & format::kStateMask;
              bool same = memcmp(&first[i], &second[i], sizeof(LiveRecord)) == 0;
              // What is not ready at rest is copied as it is: a record that a killed process left half-written is
              // counted by the reader.
              if (same && (state == format::kReady || state == format::kFree)) {
                settled[i] = 1;
              } else {
                busy |= !same;
                first[i] = second[i];
              }
            }
            if (!busy) break;
          }
          for (size_t i = 0; i < count; i++) {
            uint32_t state = first[i].state & format::kStateMask;
            if (!settled[i] && state == format::kReady) first[i] = LiveRecord{};
          }
          return WriteSparse(reinterpret_cast<const char*>(first.data()), count * sizeof(LiveRecord), offset)
                     ? absl::OkStatus()
                     : WriteError();
        });
  }

  // Tails of all buffers: they move when deltas are applied to sites.
  absl::StatusOr<std::vector<uint32_t>> CopyBuffers(const format::Region& region) {
    std::vector<uint32_t> tails;
    absl::Status copied = ForEachDataChunk(
        region.offset, region.offset + region.bytes, sizeof(format::BufferRecord),
        [&](uint64_t offset, uint64_t bytes) {
          std::vector<format::BufferRecord> records(bytes / sizeof(format::BufferRecord));
          uint64_t whole = records.size() * sizeof(format::BufferRecord);
          if (!ReadFully(from_, records.data(), whole, offset)) return ReadError();
          for (const format::BufferRecord& record : records) tails.push_back(record.tail);
          return WriteSparse(reinterpret_cast<const char*>(records.data()), whole, offset) ? absl::OkStatus()
                                                                                           : WriteError();
        });
    if (!copied.ok()) return copied;
    return tails;
  }

  absl::Status CopySitesAndBuffers() {
    const format::Region buffers = Place(format::kRegionBuffers);
    const uint64_t buffers_shift = shift_;
    absl::StatusOr<std::vector<uint32_t>> before = CopyBuffers(buffers);
    if (!before.ok()) return before.status();
    // Room for sites that appear meanwhile: what is in the buffers may speak of them.
    const format::Region sites = Place(format::kRegionSites, kSlackBytes);
    const uint64_t sites_shift = shift_;
    for (int attempt = 0; attempt < kBufferReads; attempt++) {
      shift_ = sites_shift;
      if (absl::Status copied = CopyRange(sites.offset, sites.offset + sites.bytes); !copied.ok()) return copied;
      shift_ = buffers_shift;
      absl::StatusOr<std::vector<uint32_t>> after = CopyBuffers(buffers);
      if (!after.ok()) return after.status();
      if (*before == *after) return absl::OkStatus();
      before = after;
    }
    return absl::OkStatus();
  }

  absl::Status CopyRange(uint64_t begin, uint64_t end) {
    return ForEachDataChunk(begin, end, format::kPageBytes, [&](uint64_t offset, uint64_t bytes) {
      std::vector<char> chunk(bytes);
      if (!ReadFully(from_, chunk.data(), bytes, offset)) return ReadError();
      return WriteSparse(chunk.data(), bytes, offset) ? absl::OkStatus() : WriteError();
    });
  }

  absl::Status CopyOtherRegions() {
    for (uint32_t kind = 0; kind < header_.region_count; kind++) {
      if (kind == format::kRegionLive || kind == format::kRegionBuffers || kind == format::kRegionSites) continue;
      const format::Region region = Place(static_cast<format::RegionKind>(kind));
      if (absl::Status copied = CopyRange(region.offset, region.offset + region.bytes); !copied.ok()) return copied;
    }
    return absl::OkStatus();
  }

  // Of a file that is damaged: everything, where it is.
  absl::Status CopyRest() {
    shift_ = 0;
    std::vector<format::Region> done = {RegionOf(format::kRegionLive), RegionOf(format::kRegionSites),
                                        RegionOf(format::kRegionBuffers)};
    std::sort(done.begin(), done.end(),
              [](const format::Region& a, const format::Region& b) { return a.offset < b.offset; });
    uint64_t at = sizeof(header_);
    for (const format::Region& region : done) {
      if (region.offset > at) {
        if (absl::Status copied = CopyRange(at, region.offset); !copied.ok()) return copied;
      }
      at = std::max(at, region.offset + region.bytes);
    }
    return at < file_bytes_ ? CopyRange(at, file_bytes_) : absl::OkStatus();
  }

  // Who cannot be looked at (another user's process) is copied without.
  absl::Status WriteProcess(const CopyOptions& options) {
    absl::StatusOr<ProcessMemory> memory =
        CollectProcessMemory(options.pid, {.nmt = options.nmt, .nmt_problem = options.nmt_problem});
    if (!memory.ok()) return absl::OkStatus();
    if (absl::Status marked = MarkEndedThreads(*memory); !marked.ok()) return marked;
    const std::string block = WriteProcessBlock(*memory);
    format::Region& region = header_.regions[format::kRegionProcess];
    region.offset = PageUp(end_);
    region.bytes = PageUp(block.size());
    region.record_bytes = 1;
    // What lies between is not there: a region of no bytes.
    for (uint32_t kind = header_.region_count; kind < format::kRegionProcess; kind++)
      header_.regions[kind] = {sizeof(header_), 0, 0, 0};
    header_.region_count = std::max<uint32_t>(header_.region_count, format::kRegionProcess + 1);
    header_.file_bytes = region.offset + region.bytes;
    if (ftruncate(to_, static_cast<off_t>(header_.file_bytes)) != 0) return WriteError();
    return WriteFully(to_, block.data(), block.size(), region.offset) ? absl::OkStatus() : WriteError();
  }

  // The target notices it only now and then.
  absl::Status MarkEndedThreads(const ProcessMemory& memory) {
    std::set<uint32_t> tids;
    for (const LiveThread& thread : memory.threads) tids.insert(thread.tid);
    if (tids.empty()) return absl::OkStatus();
    const format::Region region = header_.regions[format::kRegionThreads];
    std::vector<format::ThreadRecord> records(kThreadsAtOnce);
    const uint64_t end = std::min(region.offset + region.bytes, end_);
    for (uint64_t offset = region.offset; offset < end; offset += kThreadsAtOnce * sizeof(format::ThreadRecord)) {
      records.resize(std::min<uint64_t>(kThreadsAtOnce, (end - offset) / sizeof(format::ThreadRecord)));
      if (!ReadFully(to_, records.data(), records.size() * sizeof(format::ThreadRecord), offset)) return WriteError();
      for (size_t i = 0; i < records.size(); i++) {
        format::ThreadRecord& record = records[i];
        if (record.state != format::kReady || record.tid == 0 || tids.contains(record.tid) ||
            (record.flags & format::kThreadEnded) != 0)
          continue;
        record.flags |= format::kThreadEnded;
        if (!WriteFully(to_, &record, sizeof(record), offset + i * sizeof(record))) return WriteError();
      }
    }
    return absl::OkStatus();
  }

  absl::Status WriteHeader(const CopyOptions& options, uint64_t begin) {
    if (options.saved) header_.outcome.saved = 1;
    if (options.replaced) header_.outcome.end = format::kEndExec;
    if (options.note.realtime_ns != 0) header_.memory_note = options.note;
    if (options.is_snapshot) {
      header_.is_snapshot = 1;
      header_.snapshot_begin_realtime_ns = begin;
      header_.snapshot_rss_bytes = options.pid > 0 ? ResidentBytesOf(options.pid) : header_.snapshot_rss_bytes;
      memset(header_.label, 0, sizeof(header_.label));
      memcpy(header_.label, options.label.data(), std::min(options.label.size(), sizeof(header_.label) - 1));
      header_.snapshot_end_realtime_ns = RealtimeNow();
    }
    return WriteFully(to_, &header_, sizeof(header_), 0) ? absl::OkStatus() : WriteError();
  }

  int from_, to_;
  const std::string& from_name_;
  const std::string& to_name_;
  uint64_t file_bytes_ = 0;
  bool packs_ = false;
  uint64_t shift_ = 0;              // what is copied now lies so much further on (modulo 2^64) in the copy
  uint64_t end_ = sizeof(header_);  // of the copy so far
  format::Region placed_[format::kRegionCapacity] = {};
  format::Header header_{};
};

}  // namespace

absl::Status CopyProfile(int from_descriptor, const std::string& from_name, const std::string& to,
                         const CopyOptions& options) {
  struct stat status;
  if (!options.overwrite && lstat(to.c_str(), &status) == 0)
    return absl::AlreadyExistsError(absl::StrCat(to, " is there already"));
  absl::StatusOr<OutputFile> out = OutputFile::Create(to);
  if (!out.ok()) return out.status();
  Copier copier(from_descriptor, out->descriptor(), from_name, to);
  if (absl::Status copied = copier.Run(options); !copied.ok()) return copied;
  // Who may read the profile may read its copies (`mode=`).
  if (fstat(from_descriptor, &status) == 0) (void)fchmod(out->descriptor(), status.st_mode & 0777);
  return out->Commit(options.overwrite ? OutputFile::kOverwrite : OutputFile::kRefuseToOverwrite);
}

absl::Status CopyProfile(const std::string& from, const std::string& to, const CopyOptions& options) {
  int descriptor = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoStatus(errno, "cannot open", from);
  absl::Status status = CopyProfile(descriptor, from, to, options);
  close(descriptor);
  return status;
}

}  // namespace cadastre
