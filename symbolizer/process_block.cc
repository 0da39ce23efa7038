#include "symbolizer/process_block.h"

#include <algorithm>

#include "absl/status/status.h"
#include "symbolizer/packed_text.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxUnfoldedBytes = 4 * kMaxProcessBytes;
constexpr uint64_t kMaxAreaBytes =
    1ull << 57;  // five-level paging; one page of the kernel's own ([vsyscall]) lies above

constexpr uint32_t kReadable = 1, kWritable = 2, kExecutable = 4, kShared = 8, kPagesKnown = 16, kNoReserve = 32,
                   kGrowsDown = 64;

uint32_t BitsOf(const MemoryArea& area) {
  return (area.readable ? kReadable : 0) | (area.writable ? kWritable : 0) | (area.executable ? kExecutable : 0) |
         (area.shared ? kShared : 0) | (area.pages_known ? kPagesKnown : 0) | (area.noreserve ? kNoReserve : 0) |
         (area.grows_down ? kGrowsDown : 0);
}

// Ranges in order: the gap from the last one's end, then the length. What is out of order wraps, and wraps back.
class RangeWriter {
 public:
  explicit RangeWriter(std::string* out) : out_(out) {}
  void Put(uint64_t start, uint64_t end) {
    PutVarint(start - last_, out_);
    PutVarint(end - start, out_);
    last_ = end;
  }

 private:
  std::string* out_;
  uint64_t last_ = 0;
};

class RangeReader {
 public:
  explicit RangeReader(PackedReader* in) : in_(in) {}
  // in_order: none may begin before the last one ended.
  void Take(uint64_t* start, uint64_t* end, bool in_order) {
    *start = last_ + in_->Varint();
    const uint64_t length = in_->Varint();
    *end = *start + length;
    if (*end < *start || (in_order && *start < last_)) in_->Fail();
    last_ = *end;
  }

 private:
  PackedReader* in_;
  uint64_t last_ = 0;
};

}  // namespace

std::string WriteProcessBlock(const ProcessMemory& memory) {
  NumberedStrings strings;
  std::string body;
  auto text = [&](const std::string& value) { PutVarint(strings.Number(value), &body); };
  for (uint64_t value : {memory.taken_realtime_ns, static_cast<uint64_t>(memory.pid), memory.page_table_bytes,
                         memory.status_rss_bytes, memory.cgroup.current_bytes, memory.cgroup.limit_bytes,
                         memory.cgroup.inactive_file_bytes, memory.cgroup.anonymous_bytes, memory.cgroup.file_bytes}) {
    PutVarint(value, &body);
  }
  for (const std::string* value : {&memory.exe, &memory.nmt, &memory.nmt_level}) text(*value);
  PutVarint(memory.areas.size(), &body);
  RangeWriter areas(&body);
  for (const MemoryArea& area : memory.areas) {
    areas.Put(area.start, area.end);
    text(area.name);
    for (uint64_t value :
         {static_cast<uint64_t>(BitsOf(area)), area.offset, area.inode, area.rss_bytes, area.pss_bytes,
          area.shared_bytes, area.private_bytes, area.anonymous_bytes, area.huge_bytes, area.swap_bytes}) {
      PutVarint(value, &body);
    }
  }
  PutVarint(memory.resident.size(), &body);
  RangeWriter resident(&body);
  for (const MemoryRange& range : memory.resident) resident.Put(range.start, range.end);
  PutVarint(memory.known.size(), &body);
  RangeWriter known(&body);
  for (const KnownRange& range : memory.known) {
    known.Put(range.start, range.end);
    PutVarint(static_cast<uint64_t>(range.use), &body);
    PutVarint(range.tid, &body);
    text(range.text);
  }
  PutVarint(memory.threads.size(), &body);
  for (const LiveThread& thread : memory.threads) {
    PutVarint(thread.tid, &body);
    text(thread.name);
  }
  // Blocks without it are older.
  const AllocatorState& allocator = memory.allocator;
  text(allocator.name);
  for (uint64_t value : {allocator.taken_realtime_ns, allocator.arenas, allocator.system_bytes, allocator.free_bytes,
                         allocator.free_chunks, allocator.top_bytes, static_cast<uint64_t>(allocator.whole)}) {
    PutVarint(value, &body);
  }
  PutVarint(static_cast<uint64_t>(memory.nmt_apart_ns + 1), &body);  // blocks without it are older, too
  std::string whole;
  strings.Write(&whole);
  whole += body;
  return PackText(kProcessBlockMagic, kProcessBlockVersion, whole);
}

absl::StatusOr<ProcessMemory> ParseProcessBlock(const char* bytes, uint64_t size) {
  absl::StatusOr<std::string> whole =
      UnpackText(kProcessBlockMagic, kProcessBlockVersion, kMaxProcessBytes, bytes, size);
  if (!whole.ok()) return whole.status();
  PackedReader in(*whole);
  std::vector<std::string> strings(in.Count(1));
  for (std::string& string : strings) string = in.String();
  uint64_t unfolded_bytes = 0;
  auto text = [&]() -> std::string {
    const uint64_t number = in.Varint();
    if (number < strings.size() && (unfolded_bytes += strings[number].size()) <= kMaxUnfoldedBytes)
      return strings[number];
    in.Fail();
    return "";
  };
  ProcessMemory memory;
  memory.taken_realtime_ns = in.Varint();
  memory.pid = static_cast<uint32_t>(in.Varint());
  for (uint64_t* value :
       {&memory.page_table_bytes, &memory.status_rss_bytes, &memory.cgroup.current_bytes, &memory.cgroup.limit_bytes,
        &memory.cgroup.inactive_file_bytes, &memory.cgroup.anonymous_bytes, &memory.cgroup.file_bytes}) {
    *value = in.Varint();
  }
  for (std::string* value : {&memory.exe, &memory.nmt, &memory.nmt_level}) *value = text();
  memory.areas.resize(in.Count(13));
  RangeReader areas(&in);
  for (MemoryArea& area : memory.areas) {
    areas.Take(&area.start, &area.end, true);
    area.name = text();
    const uint64_t bits = in.Varint();
    area.readable = (bits & kReadable) != 0;
    area.writable = (bits & kWritable) != 0;
    area.executable = (bits & kExecutable) != 0;
    area.shared = (bits & kShared) != 0;
    area.pages_known = (bits & kPagesKnown) != 0;
    area.noreserve = (bits & kNoReserve) != 0;
    area.grows_down = (bits & kGrowsDown) != 0;
    for (uint64_t* value : {&area.offset, &area.inode, &area.rss_bytes, &area.pss_bytes, &area.shared_bytes,
                            &area.private_bytes, &area.anonymous_bytes, &area.huge_bytes, &area.swap_bytes}) {
      *value = in.Varint();
    }
    if (area.start >= area.end || area.rss_bytes > std::min(area.end - area.start, kMaxAreaBytes)) in.Fail();
    if (!in.ok()) return absl::DataLossError("its mappings are damaged");
  }
  memory.resident.resize(in.Count(2));
  RangeReader resident(&in);
  for (MemoryRange& range : memory.resident) resident.Take(&range.start, &range.end, true);
  memory.known.resize(in.Count(5));
  RangeReader known(&in);
  for (KnownRange& range : memory.known) {
    known.Take(&range.start, &range.end, false);
    const uint64_t use = in.Varint();
    if (use >= kKnownUses) in.Fail();
    range.use = static_cast<KnownUse>(use);
    range.tid = static_cast<uint32_t>(in.Varint());
    range.text = text();
    if (!in.ok()) return absl::DataLossError("its ranges are damaged");
  }
  memory.threads.resize(in.Count(2));
  for (LiveThread& thread : memory.threads) {
    thread.tid = static_cast<uint32_t>(in.Varint());
    thread.name = text();
  }
  if (in.left() > 0) {
    AllocatorState& allocator = memory.allocator;
    allocator.name = text();
    for (uint64_t* value : {&allocator.taken_realtime_ns, &allocator.arenas, &allocator.system_bytes,
                            &allocator.free_bytes, &allocator.free_chunks, &allocator.top_bytes}) {
      *value = in.Varint();
    }
    allocator.whole = in.Varint() != 0;
  }
  if (in.left() > 0) memory.nmt_apart_ns = static_cast<int64_t>(in.Varint() - 1);
  if (!in.ok()) return absl::DataLossError("its text is damaged");
  return memory;
}

}  // namespace cadastre
