#include "report/profile_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
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
  Copier(int from, int to, const std::string& from_name, const std::string& to_name, Effort effort)
      : from_(from), to_(to), from_name_(from_name), to_name_(to_name), out_(to, to_name, effort) {}

  absl::Status Run(const CopyOptions& options) {
    uint64_t begin = RealtimeNow();
    struct stat status;
    if (fstat(from_, &status) != 0) return ErrnoStatus(errno, "cannot read", from_name_);
    file_bytes_ = static_cast<uint64_t>(status.st_size);
    if (file_bytes_ < sizeof(header_) || !ReadFully(from_, &header_, sizeof(header_), 0) ||
        memcmp(header_.magic, format::kMagic, sizeof(format::kMagic)) != 0) {
      return absl::DataLossError(absl::StrCat(from_name_, ": not a profile"));
    }
    if (!format::IsKnownVersion(header_.version)) {
      return absl::DataLossError(absl::StrCat(from_name_, ": version ", header_.version, " is not supported"));
    }
    if (format::IsPackedVersion(header_.version) || !RegionsAreSound()) return CopyAsItIs(options, begin);
    if (absl::Status copied = CopyRawStrings(); !copied.ok()) return copied;
    if (absl::Status copied = CopyLiveBesideNmt(options, &begin); !copied.ok()) return copied;
    if (absl::Status copied = CopySitesAndBuffers(); !copied.ok()) return copied;
    CopyFrames();
    if (absl::Status copied = CopyOtherRegions(options); !copied.ok()) return copied;
    if (!ReadFully(from_, &header_, sizeof(header_), 0)) return ReadError();
    if (process_.bytes > 0) NameProcess();
    FillHeader(options, begin);
    return out_.Finish(&header_);
  }

 private:
  // A part of a region as it was read, holes left out.
  struct Piece {
    uint64_t offset;  // from the region's start
    std::vector<char> bytes;
  };

  absl::Status ReadError() const { return ErrnoStatus(errno, "cannot read", from_name_); }
  absl::Status WriteError() const { return ErrnoStatus(errno, "cannot write", to_name_); }
  format::Region RegionOf(uint32_t kind) const {
    return kind < header_.region_count ? header_.regions[kind] : format::Region{};
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

  absl::Status CopyRawStrings() {
    const format::Region region = RegionOf(format::kRegionStrings);
    std::vector<char> strings(std::min(region.bytes, kMostRawStringBytes));
    if (!ReadFully(from_, strings.data(), strings.size(), region.offset)) return ReadError();
    out_.Begin(header_, strings.data(), strings.size());
    return absl::OkStatus();
  }

  absl::Status CopyLive() {
    using format::LiveRecord;
    const format::Region region = RegionOf(format::kRegionLive);
    return ForEachDataChunk(region.offset, region.offset + region.bytes, sizeof(LiveRecord),
                            [&](uint64_t offset, uint64_t bytes) {
                              size_t count = bytes / sizeof(LiveRecord);
                              std::vector<LiveRecord> first(count), second(count);
                              std::vector<char> settled(count, 0);
                              if (!ReadFully(from_, first.data(), count * sizeof(LiveRecord), offset))
                                return ReadError();
                              for (int attempt = 0; attempt < kLiveReads; attempt++) {
                                if (!ReadFully(from_, second.data(), count * sizeof(LiveRecord), offset))
                                  return ReadError();
                                bool busy = false;
                                for (size_t i = 0; i < count; i++) {
                                  if (settled[i]) continue;
                                  uint32_t state = first[i].state & format::kStateMask;
                                  bool same = memcmp(&first[i], &second[i], sizeof(LiveRecord)) == 0;
                                  // What is not ready at rest is copied as it is: a record that a killed process left
                                  // half-written is counted by the reader.
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
                              out_.Add(format::kRegionLive, offset - region.offset,
                                       reinterpret_cast<const char*>(first.data()), count * sizeof(LiveRecord));
                              return absl::OkStatus();
                            });
  }

  // Where somebody asks for NMT, and waits for it: when its report begins, so that the two can be compared. Else the
  // copy comes first: a process near its limit may not live for the answer.
  absl::Status CopyLiveBesideNmt(const CopyOptions& options, uint64_t* begin) {
    absl::Status copied;
    bool is_copied = false;
    auto copy = [&] {
      *begin = RealtimeNow();
      copied = CopyLive();
      copied_monotonic_ns_ = ClockNow(CLOCK_MONOTONIC);
      is_copied = true;
    };
    const bool is_asked_for = options.nmt == NmtWanted::kSummary || options.nmt == NmtWanted::kDetail;
    if (is_asked_for && options.is_snapshot && options.pid > 0) nmt_ = AskNmt(options.pid, options.nmt, copy);
    if (!is_copied) copy();
    return copied;
  }

  absl::StatusOr<std::vector<Piece>> Pieces(uint32_t kind, uint64_t unit) {
    const format::Region region = RegionOf(kind);
    std::vector<Piece> pieces;
    absl::Status read =
        ForEachDataChunk(region.offset, region.offset + region.bytes, unit, [&](uint64_t offset, uint64_t bytes) {
          pieces.push_back({offset - region.offset, std::vector<char>(bytes / unit * unit)});
          std::vector<char>& to = pieces.back().bytes;
          return ReadFully(from_, to.data(), to.size(), offset) ? absl::OkStatus() : ReadError();
        });
    if (!read.ok()) return read;
    return pieces;
  }

  void AddPieces(uint32_t kind, const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) out_.Add(kind, piece.offset, piece.bytes.data(), piece.bytes.size());
  }

  // Tails of all buffers: they move when deltas are applied to sites.
  static std::vector<uint32_t> TailsOf(const std::vector<Piece>& buffers) {
    std::vector<uint32_t> tails;
    for (const Piece& piece : buffers) {
      for (size_t at = 0; at < piece.bytes.size(); at += sizeof(format::BufferRecord)) {
        uint32_t tail;
        memcpy(&tail, piece.bytes.data() + at + offsetof(format::BufferRecord, tail), sizeof(tail));
        tails.push_back(tail);
      }
    }
    return tails;
  }

  absl::Status CopySitesAndBuffers() {
    absl::StatusOr<std::vector<Piece>> buffers = Pieces(format::kRegionBuffers, sizeof(format::BufferRecord));
    if (!buffers.ok()) return buffers.status();
    const PackedWriter::Mark mark = out_.Now();
    for (int attempt = 0; attempt < kBufferReads; attempt++) {
      const std::vector<uint32_t> before = TailsOf(*buffers);
      out_.BackTo(mark);
      if (absl::Status copied = CopyRegion(format::kRegionSites, sizeof(format::SiteRecord)); !copied.ok())
        return copied;
      buffers = Pieces(format::kRegionBuffers, sizeof(format::BufferRecord));
      if (!buffers.ok()) return buffers.status();
      if (TailsOf(*buffers) == before) break;
    }
    AddPieces(format::kRegionBuffers, *buffers);
    return absl::OkStatus();
  }

  void CopyFrames() {
    const format::Region region = RegionOf(format::kRegionFrames);
    out_.AddStacks(
        [&](uint64_t first, uint64_t count, uint64_t* words) {
          return ReadFully(from_, words, count * sizeof(*words), region.offset + first * sizeof(*words));
        },
        region.bytes / sizeof(uint64_t));
  }

  absl::Status CopyRegion(uint32_t kind, uint64_t unit) {
    const format::Region region = RegionOf(kind);
    return ForEachDataChunk(region.offset, region.offset + region.bytes, unit, [&](uint64_t offset, uint64_t bytes) {
      std::vector<char> chunk(bytes);
      if (!ReadFully(from_, chunk.data(), bytes, offset)) return ReadError();
      out_.Add(kind, offset - region.offset, chunk.data(), bytes);
      return absl::OkStatus();
    });
  }

  // Whatever names a record comes before it: strings are last.
  absl::Status CopyOtherRegions(const CopyOptions& options) {
    for (uint32_t kind : {format::kRegionProcess, format::kRegionSymbols}) {
      if (absl::Status copied = CopyRegion(kind, format::kPageBytes); !copied.ok()) return copied;
    }
    absl::Status copied = CopyRegion(format::kRegionMappings, sizeof(format::MappingRecord));
    if (!copied.ok()) return copied;
    absl::StatusOr<std::vector<Piece>> threads = Pieces(format::kRegionThreads, sizeof(format::ThreadRecord));
    if (!threads.ok()) return threads.status();
    if (options.is_snapshot && options.pid > 0) AddProcess(options, &*threads);
    AddPieces(format::kRegionThreads, *threads);
    copied = CopyRegion(format::kRegionLibraries, format::kPageBytes);
    return copied.ok() ? CopyRegion(format::kRegionStrings, format::kPageBytes) : copied;
  }

  // What is packed already, block by block as it is; and a file that is damaged: everything, where it is.
  absl::Status CopyAsItIs(const CopyOptions& options, uint64_t begin) {
    absl::Status copied =
        ForEachDataChunk(sizeof(header_), file_bytes_, format::kPageBytes, [&](uint64_t offset, uint64_t bytes) {
          std::vector<char> chunk(std::min(bytes, file_bytes_ - offset));
          if (!ReadFully(from_, chunk.data(), chunk.size(), offset)) return ReadError();
          return WriteSparse(chunk.data(), chunk.size(), offset) ? absl::OkStatus() : WriteError();
        });
    if (!copied.ok()) return copied;
    if (ftruncate(to_, static_cast<off_t>(file_bytes_)) != 0) return WriteError();
    if (!ReadFully(from_, &header_, sizeof(header_), 0)) return ReadError();
    FillHeader(options, begin);
    return WriteFully(to_, &header_, sizeof(header_), 0) ? absl::OkStatus() : WriteError();
  }

  // Pages of zeros are left as holes.
  bool WriteSparse(const char* bytes, uint64_t count, uint64_t offset) {
    for (uint64_t at = 0; at < count;) {
      uint64_t step = std::min(count - at, format::kPageBytes - (offset + at) % format::kPageBytes);
      if (memcmp(bytes + at, kZeroPage, step) != 0 && !WriteFully(to_, bytes + at, step, offset + at)) return false;
      at += step;
    }
    return true;
  }

  // Who cannot be looked at (another user's process) is copied without.
  void AddProcess(const CopyOptions& options, std::vector<Piece>* threads) {
    absl::StatusOr<ProcessMemory> memory =
        CollectProcessMemory(options.pid, {.nmt = options.nmt,
                                           .nmt_answer = nmt_.has_value() ? &*nmt_ : nullptr,
                                           .records_monotonic_ns = copied_monotonic_ns_,
                                           .nmt_problem = options.nmt_problem});
    if (!memory.ok()) return;
    MarkEndedThreads(*memory, threads);
    const std::string block = WriteProcessBlock(*memory);
    process_ = {PageUp(header_.file_bytes), PageUp(block.size()), 1, 0};
    out_.Add(format::kRegionProcess, 0, block.data(), block.size());
  }

  void NameProcess() {
    // What lies between is not there: a region of no bytes.
    for (uint32_t kind = header_.region_count; kind < format::kRegionProcess; kind++)
      header_.regions[kind] = {sizeof(header_), 0, 0, 0};
    header_.region_count = std::max<uint32_t>(header_.region_count, format::kRegionProcess + 1);
    header_.regions[format::kRegionProcess] = process_;
    header_.file_bytes = process_.offset + process_.bytes;
  }

  // The target notices it only now and then.
  static void MarkEndedThreads(const ProcessMemory& memory, std::vector<Piece>* threads) {
    std::set<uint32_t> tids;
    for (const LiveThread& thread : memory.threads) tids.insert(thread.tid);
    if (tids.empty()) return;
    for (Piece& piece : *threads) {
      for (size_t at = 0; at < piece.bytes.size(); at += sizeof(format::ThreadRecord)) {
        format::ThreadRecord record;
        memcpy(&record, piece.bytes.data() + at, sizeof(record));
        if (record.state != format::kReady || record.tid == 0 || tids.contains(record.tid)) continue;
        record.flags |= format::kThreadEnded;
        memcpy(piece.bytes.data() + at, &record, sizeof(record));
      }
    }
  }

  void FillHeader(const CopyOptions& options, uint64_t begin) {
    if (options.saved) header_.outcome.saved = 1;
    if (options.replaced) header_.outcome.end = format::kEndExec;
    if (options.note.realtime_ns != 0) header_.memory_note = options.note;
    if (!options.is_snapshot) return;
    memset(header_.label, 0, sizeof(header_.label));
    memcpy(header_.label, options.label.data(), std::min(options.label.size(), sizeof(header_.label) - 1));
    if (header_.is_snapshot != 0) return;  // of the moment that it was of
    header_.is_snapshot = 1;
    header_.snapshot_begin_realtime_ns = begin;
    header_.snapshot_rss_bytes = options.pid > 0 ? ResidentBytesOf(options.pid) : header_.snapshot_rss_bytes;
    header_.snapshot_end_realtime_ns = RealtimeNow();
  }

  int from_, to_;
  const std::string& from_name_;
  const std::string& to_name_;
  PackedWriter out_;
  uint64_t file_bytes_ = 0;
  format::Region process_{};          // that was added
  std::optional<NmtAnswer> nmt_;      // asked before the copy
  uint64_t copied_monotonic_ns_ = 0;  // when the live samples were
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
  Copier copier(from_descriptor, out->descriptor(), from_name, to, options.effort);
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
