// What the kernel and, where it could be asked, the JVM said about a process's memory at one moment: the inputs of the
// RSS ledger. Taken from a running process (report/process_memory) and stored in its snapshots (process_block.h).
//
// Units: bytes, absolute addresses of the target, ranges are [start, end). Errors: none; what could not be read is
// empty or 0. Thread-safety: plain values.
#ifndef CADASTRE_SYMBOLIZER_PROCESS_MEMORY_H_
#define CADASTRE_SYMBOLIZER_PROCESS_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace cadastre {

inline constexpr uint64_t kPage = 4096;
// glibc's malloc/arena.c: HEAP_MAX_SIZE = 2 * DEFAULT_MMAP_THRESHOLD_MAX on 64-bit machines.
inline constexpr uint64_t kArenaHeapBytes = 64 << 20;

struct MemoryRange {
  uint64_t start = 0, end = 0;
};

// One mapping as /proc/PID/smaps has it.
struct MemoryArea {
  uint64_t start = 0, end = 0, offset = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  bool noreserve = false;   // the kernel counts nothing of it as promised (MAP_NORESERVE)
  bool grows_down = false;  // MAP_GROWSDOWN, or the main thread's stack
  std::string name;         // path with " (deleted)", "[heap]", "[anon:NAME]"; empty = anonymous
  uint64_t inode = 0;
  uint64_t rss_bytes = 0, pss_bytes = 0, shared_bytes = 0, private_bytes = 0;  // shared + private = rss
  uint64_t anonymous_bytes = 0, huge_bytes = 0, swap_bytes = 0;                // AnonHugePages
  // The kernel said which of its pages are resident: ProcessMemory::resident has them. Else only how many.
  bool pages_known = false;
};

// What a look into the process's own memory says a range is for.
enum class KnownUse : uint32_t {
  kJavaHeap = 0,     // CollectedHeap's reservation
  kCodeCache = 1,    // CodeCache's bounds
  kAllocator = 2,    // glibc: an arena's heap, or the chunk of a big block, by their headers
  kThreadStack = 3,  // a thread's stack pointer lies in this area; `tid` says whose
  kNmt = 4,          // `text` is the category that HotSpot's native memory tracking names
  kLibrary = 5,      // a loaded library's segments, zero-initialised data included, by its program headers
  kMetaspace = 6,    // HotSpot: metadata of classes lies in this area
  kClassSpace = 7,   // HotSpot: so do the classes themselves
  kGc = 8,           // HotSpot: a collector's table
};
inline constexpr uint32_t kKnownUses = 9;

struct KnownRange {
  uint64_t start = 0, end = 0;
  KnownUse use = KnownUse::kAllocator;
  uint32_t tid = 0;
  std::string text;
};

struct LiveThread {
  uint32_t tid = 0;
  std::string name;
};

// Of the memory cgroup that the process is in, as Kubernetes counts: working set = current - inactive_file. 0 = not
// known.
struct CgroupMemory {
  uint64_t current_bytes = 0, limit_bytes = 0, inactive_file_bytes = 0, anonymous_bytes = 0, file_bytes = 0;
};

// What an allocator's own structures said, read from outside while the process ran on. Its blocks with mappings of
// their own are not in it, and what threads keep for themselves (tcache) counts as in use.
struct AllocatorState {
  std::string name;  // "glibc"; empty: not known
  uint64_t taken_realtime_ns = 0;
  uint64_t arenas = 0, system_bytes = 0;     // that the arenas have from the kernel
  uint64_t free_bytes = 0, free_chunks = 0;  // on the lists of free chunks
  uint64_t top_bytes = 0;                    // free at the arenas' ends, on no list
  bool whole = true;                         // every list was read to its end; else there is more that is free
};

struct ProcessMemory {
  uint64_t taken_realtime_ns = 0;
  uint32_t pid = 0;
  std::string exe;
  std::vector<MemoryArea> areas;      // in order of address
  std::vector<MemoryRange> resident;  // in order, apart: pages of areas with pages_known
  std::vector<KnownRange> known;      // in order of `start`
  std::vector<LiveThread> threads;
  CgroupMemory cgroup;
  AllocatorState allocator;
  uint64_t status_rss_bytes = 0;  // VmRSS, read after the areas
  uint64_t page_table_bytes = 0;  // VmPTE: counted against the cgroup, not in Rss
  std::string nmt;                // what `jcmd PID VM.native_memory` printed; empty = not asked, or not on
  std::string nmt_level;          // "summary" or "detail"
  int64_t nmt_apart_ns = -1;      // from when that answer began until the live samples were read; -1 = not known

  uint64_t RssBytes() const {
    uint64_t sum = 0;
    for (const MemoryArea& area : areas) sum += area.rss_bytes;
    return sum;
  }
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PROCESS_MEMORY_H_
