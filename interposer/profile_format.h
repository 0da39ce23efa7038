// The profile: the one file in which the target process, the symbolizer and the report meet.
//
// Purpose      Live state of a recorded process (not a log), written by libcadastre.so into a MAP_SHARED file and
// readable
//              at any moment from outside: while the process runs, after it exits, after SIGKILL.
// Units        Bytes, nanoseconds, and "milli-blocks" where a count is an estimate (see SiteRecord::count_fixed).
// Byte order   Little-endian, x86-64 only. Every structure has a fixed size that is asserted below.
// Writers      The target. From outside, `cadastre` writes only Header::control, control_log, outcome and memory_note.
// Trust        The target never reads an offset or an index back from the file. A reader must trust nothing:
//              every index and length is bounds-checked before use.
// Thread- and signal-safety: plain data; each record carries a state word that says whether it is whole (see
// RecordState).
//
// clang-format off
// Drawing:
//   0        4096                                                                             Header::file_bytes
//   ┌────────┬──────────┬────────────┬──────────┬─────────┬──────────┬──────────┬─────────┬──────────────┐
//   │ Header │ strings  │ libraries  │ threads  │ buffers │ mappings │  sites   │ frames  │ live samples │   sparse; each
//   └────────┴──────────┴────────────┴──────────┴─────────┴──────────┴──────────┴─────────┴──────────────┘   region is page
//                                                                                                              aligned
// clang-format on
// A region is an array of fixed-size records (strings: 8-byte units, frames: 8-byte words). Records never move. A
// record that was never written is all zero bytes, so "not there yet" needs no cursor: readers scan a region and skip
// state 0. A live file's last page belongs to no region: the process that writes it looks there whether the file was
// cut.
//
// Example (a reader):
//   const Header* h = ...mapped file...;
//   if (memcmp(h->magic, kMagic, 8) != 0 || h->version != kVersion) return Unusable();
//   const Region& r = h->regions[kRegionSites];
//   for (uint64_t i = 0; i < r.bytes / sizeof(SiteRecord); i++) ...
#ifndef CADASTRE_INTERPOSER_PROFILE_FORMAT_H_
#define CADASTRE_INTERPOSER_PROFILE_FORMAT_H_

#include <stdint.h>

namespace cadastre::format {

inline constexpr char kMagic[8] = {'C', 'A', 'D', 'A', 'S', 'T', 'R', 'E'};
inline constexpr uint32_t kVersion = 1;
// What `cadastre` saves: the same header and strings as far as Header::packed_offset, and behind it all regions in
// compressed blocks (symbolizer/packed_profile.h). Regions are then those of the profile as it was before.
inline constexpr uint32_t kPackedVersion = 5;
inline constexpr uint32_t kOldestPackedVersion = 3;  // how they differ: packed_profile.h
constexpr bool IsPackedVersion(uint32_t version) {
  return version >= kOldestPackedVersion && version <= kPackedVersion;
}
constexpr bool IsKnownVersion(uint32_t version) { return version == kVersion || IsPackedVersion(version); }
inline constexpr uint64_t kPageBytes = 4096;

// ---- Regions ------------------------------------------------------------------------------------

enum RegionKind : uint32_t {
  kRegionStrings = 0,
  kRegionLibraries = 1,
  kRegionThreads = 2,
  kRegionBuffers = 3,
  kRegionSites = 4,
  kRegionFrames = 5,
  kRegionLive = 6,
  kRegionMappings = 7,
  kRegionCount = 8,      // what the interposer writes
  kRegionSymbols = 8,    // appended by `cadastre symbolize`; its bytes are defined in symbolizer/symbol_block.h
  kRegionProcess = 9,    // appended to a snapshot: the process at that moment; defined in symbolizer/process_block.h
  kRegionCapacity = 16,  // room in the header for regions of later versions
};

struct Region {
  uint64_t offset;        // from the start of the file, a multiple of kPageBytes
  uint64_t bytes;         // capacity; untouched pages are holes in the file
  uint32_t record_bytes;  // size of one record, for tools that print what they do not know
  uint32_t reserved;
};
static_assert(sizeof(Region) == 24);

// ---- Record states ------------------------------------------------------------------------------
// The state word of a record is the last thing written when it appears and the first thing changed when it goes.
//   kFree (0)   never used, or given back
//   kWriting    a writer is inside: skip (a process killed here leaves this for ever; it is counted as torn)
//   kReady      whole
// LiveRecord::state also carries a generation in the upper 30 bits, so that a reader which copies a slot while it is
// reused sees the state change between its two reads: read state, copy, read state again, compare.
enum RecordState : uint32_t { kFree = 0, kWriting = 1, kReady = 2, kStateMask = 3 };

// ---- Strings ------------------------------------------------------------------------------------
// A string is named by the index of its first 8-byte unit in the strings region; 0 is the empty string (unit 0 is not
// used). Layout: StringHeader, then `length` bytes, not NUL-terminated, padded with zeros to the next unit.
struct StringHeader {
  uint32_t length;
  uint32_t check;  // StringCheck(bytes); written last. A string whose check does not match is torn: "".
};
static_assert(sizeof(StringHeader) == 8);

// FNV-1a, 32 bits, never 0. (http://www.isthe.com/chongo/tech/comp/fnv/, public domain)
constexpr uint32_t StringCheck(const char* bytes, uint64_t length) {
  uint32_t hash = 2166136261u;
  for (uint64_t i = 0; i < length; i++) {
    hash ^= static_cast<uint8_t>(bytes[i]);
    hash *= 16777619u;
  }
  return hash == 0 ? 1 : hash;
}

// ---- Libraries ----------------------------------------------------------------------------------
// One loaded ELF file. Named by index; index 0 is not used. A library that was unloaded keeps its record: frames
// captured while it was there go on naming it, also when another library now lies at the same addresses.
struct LibraryRecord {
  uint32_t state;            // RecordState
  uint32_t path;             // string; empty for the vDSO and for a file whose name is not known
  uint64_t bias;             // load address minus ELF virtual address (link_map::l_addr)
  uint64_t start;            // lowest mapped address
  uint64_t end;              // one past the highest mapped address
  uint64_t loaded_ns;        // when it was first seen, since Header::start_monotonic_ns
  uint64_t unloaded_ns;      // 0 = still loaded
  uint32_t build_id_length;  // 0 = none; at most 32
  uint32_t flags;            // LibraryFlags
  uint8_t build_id[32];
  uint64_t reserved[3];
};
static_assert(sizeof(LibraryRecord) == 112);
enum LibraryFlags : uint32_t { kLibraryIsExecutable = 1, kLibraryIsVdso = 2, kLibraryIsCadastre = 4 };

// ---- Frames -------------------------------------------------------------------------------------
// One 64-bit word. The top 4 bits say what it is; ASLR and unloading do not change its meaning.
//   kFrameReturn    [63:60] tag | [59:40] library index | [39:0] ELF virtual address of the RETURN address.
//                   Look up address-1: the call is what is on the stack, not the instruction after it.
//   kFrameExact     same fields, address of the instruction itself (a frame interrupted by a signal). Look up as it is.
//   kFrameUnknown   [63:60] tag | [59:0] absolute return address in no known library (JIT code, unmapped)
//   kFrameUnknownExact  the same, exact
//   kFrameJava      [63:60] tag | [59:28] string: "package.Class.method", then perhaps a newline and the source file |
//                   [27:24] JavaFrameKind | [23:0] line, or 0. How the method was compiled is not kept: it changes
//                   while a process runs, and one call path would become many sites.
enum FrameTag : uint64_t {
  kFrameReturn = 1,
  kFrameExact = 2,
  kFrameUnknown = 3,
  kFrameUnknownExact = 4,
  kFrameJava = 5
};
inline constexpr int kFrameTagShift = 60;
inline constexpr int kFrameLibraryShift = 40;
inline constexpr uint64_t kFrameLibraryLimit = 1ull << 20;
inline constexpr uint64_t kFrameAddressMask = (1ull << kFrameLibraryShift) - 1;
inline constexpr uint64_t kFramePayloadMask = (1ull << kFrameTagShift) - 1;

constexpr uint64_t FrameTagOf(uint64_t frame) { return frame >> kFrameTagShift; }
constexpr uint64_t FrameLibraryOf(uint64_t frame) { return (frame >> kFrameLibraryShift) & (kFrameLibraryLimit - 1); }
constexpr uint64_t FrameAddressOf(uint64_t frame) { return frame & kFrameAddressMask; }
constexpr uint64_t MakeLibraryFrame(FrameTag tag, uint64_t library, uint64_t address) {
  return (static_cast<uint64_t>(tag) << kFrameTagShift) | (library << kFrameLibraryShift) |
         (address & kFrameAddressMask);
}
enum JavaFrameKind : uint32_t { kJavaMethod = 0, kJavaNativeMethod = 1 };
inline constexpr int kJavaNameShift = 28, kJavaKindShift = 24;
inline constexpr uint64_t kJavaLineMask = (1ull << kJavaKindShift) - 1;
constexpr uint64_t MakeJavaFrame(JavaFrameKind kind, uint32_t name, uint32_t line) {
  return (static_cast<uint64_t>(kFrameJava) << kFrameTagShift) | (static_cast<uint64_t>(name) << kJavaNameShift) |
         (static_cast<uint64_t>(kind) << kJavaKindShift) | (line & kJavaLineMask);
}
constexpr uint32_t JavaNameOf(uint64_t frame) { return static_cast<uint32_t>(frame >> kJavaNameShift); }
constexpr uint32_t JavaLineOf(uint64_t frame) { return static_cast<uint32_t>(frame & kJavaLineMask); }
constexpr JavaFrameKind JavaKindOf(uint64_t frame) {
  return static_cast<JavaFrameKind>((frame >> kJavaKindShift) & 15);
}
constexpr uint64_t MakeUnknownFrame(FrameTag tag, uint64_t pc) {
  return (static_cast<uint64_t>(tag) << kFrameTagShift) | (pc & kFramePayloadMask);
}

// ---- Sites --------------------------------------------------------------------------------------
// One distinct stack (and kind). Named by index; index 0 is not used; index 1 is always "[stack table full]" (no
// frames). Allocation counters here are what thread buffers have been applied to; the truth is site + pending deltas of
// all buffers.
struct SiteRecord {
  uint32_t state;        // RecordState
  uint32_t frame_count;  // leaf first
  uint64_t frame_start;  // index of the first word in the frames region
  uint64_t hash;         // of kind, flags and frames; tells equal sites apart quickly
  uint32_t kind;         // SiteKind
  uint32_t flags;        // SiteFlags
  // Everything allocated so far at this site (applied part):
  uint64_t samples;
  uint64_t count_fixed;       // estimated blocks, in 1/65536 block
  uint64_t allocated_bytes;   // estimated bytes = sum of weights
  double allocated_variance;  // sum of w(w-S), bytes^2
  // Live bytes now and when the whole process was at its peak. Rule: if peak_epoch == Header::peak_epoch the value is
  // live_at_peak_bytes, else nothing changed here since the peak and it is live_bytes. Kept lock-free, so a few racing
  // samples may be counted on either side of the peak. A reader that wants live bytes sums live records; live_bytes
  // serves the peak.
  int64_t live_bytes;
  int64_t live_at_peak_bytes;
  uint64_t peak_epoch;
  int64_t own_peak_bytes;  // the highest live_bytes this site ever had, whenever that was
  uint32_t first_thread;   // ThreadRecord of the first sample; 0 = not known
  // Where there is a JVM: sampled blocks of this site that were freed, and of those how many by threads that only carry
  // out what the garbage collector found (ThreadWork::kThreadWorkReaper).
  uint32_t frees;
  uint32_t frees_by_reaper;
  uint32_t reserved;
};
static_assert(sizeof(SiteRecord) == 112);
enum SiteKind : uint32_t { kSiteMalloc = 0, kSiteMmap = 1, kSiteStack = 2 };
enum SiteFlags : uint32_t {
  kSiteTruncatedUnknownPc = 1,      // the walk ended at a pc with no unwind rule
  kSiteTruncatedDepth = 2,          // the depth limit was reached
  kSiteTruncatedSmallStack = 4,     // too little stack was left: leaf only
  kSiteTruncatedMemory = 8,         // a stack word could not be read (bounds)
  kSiteTruncatedNested = 16,        // taken inside another capture (signal handler): leaf only
  kSiteTruncatedContinuation = 32,  // a virtual thread that has waited: its older frames lie on the Java heap
  kSiteTruncatedMask = 63,
  kSiteSkippedNative = 64,  // not cut: native frames without unwind tables are left out before a Java frame
};
inline constexpr uint32_t kSiteOverflow = 1;  // the site "[stack table full]"

// ---- Threads ------------------------------------------------------------------------------------
// One thread: any that ever gave a sample, and any whose creation was seen (then its stack and who created it are known
// too, whether it gives samples or not). Named by index; 0 = not known. The record of a thread that has ended and never
// gave a sample may be used again. A thread's stack is not among the live samples: it is this record.
struct ThreadRecord {
  uint32_t state;     // RecordState
  uint32_t tid;       // as the kernel says in the target's pid namespace; 0 = not known
  uint64_t start_ns;  // its creation or first sample, since Header::start_monotonic_ns
  char name[16];  // the kernel's name for it, NUL-padded: as of its start or first sample, then as it renames itself
  uint32_t full_name;      // string: the whole name where the kernel's is cut; 0 = name holds it all, or not known
  uint32_t creation_site;  // site of kind kSiteStack: who called pthread_create; 0 = not known
  uint64_t stack_low;      // the block that holds the stack, the guard and the thread's static TLS; 0 = not known
  uint64_t stack_high;
  uint32_t creator_creation_site;  // who had created the thread that called pthread_create; 0 = not known
  uint32_t flags;                  // ThreadFlags
};
static_assert(sizeof(ThreadRecord) == 64);
// kThreadEnded is set when it is noticed: by the target now and then and at a clean exit, in a snapshot by who takes
// it. Without it, it is not known.
enum ThreadFlags : uint32_t { kThreadEnded = 1 };

// ---- Thread buffers -----------------------------------------------------------------------------
// A ring of commutative deltas, one producer. Pending = deltas [tail, head). Written: delta, then head. Applied by the
// owner when it is full: applied = 0, redo.tail = tail; then site by site, for all deltas of one site together (their
// places behind the tail are the bits of redo.places) and for each of their 4 counters: redo = {places, field, old},
// armed; CAS(site.field, old -> new); then applied |= places, unarmed; at last tail = head. A reader that finds
// redo.tail == tail knows that the deltas of `applied` are counted; where redo.armed == 1, of those in redo.places:
// fields below redo.field are applied; field redo.field is applied if the site's value differs from redo.old_value; the
// others are still to be added.
struct Delta {
  uint32_t site;
  uint32_t samples;
  uint64_t count_fixed;
  uint64_t bytes;
  double variance;
};
static_assert(sizeof(Delta) == 32);

enum DeltaField : uint32_t {
  kDeltaSamples = 0,
  kDeltaCount = 1,
  kDeltaBytes = 2,
  kDeltaVariance = 3,
  kDeltaFields = 4
};

struct Redo {
  uint32_t armed;
  uint32_t tail;
  uint32_t field;      // DeltaField
  uint32_t places;     // kRedoPlaces and a bit a delta; without it, as was written before: so many from the tail, 0 = 1
  uint64_t old_value;  // bit pattern of the counter before
  uint64_t new_value;  // and after
};
inline constexpr uint32_t kRedoPlaces = 1u << 31;
static_assert(sizeof(Redo) == 32);

inline constexpr uint32_t kBufferDeltas = 29;
struct BufferRecord {
  uint32_t state;  // RecordState: kReady = in use
  uint32_t owner_tid;
  uint32_t thread;   // index of the owner's ThreadRecord
  uint32_t applied;  // a bit a delta, the lowest for the one at the tail
  uint32_t head;     // counts up for ever; slot = head % kBufferDeltas
  uint32_t tail;
  uint64_t samples;  // recorded by the owners so far; with Counters::samples and those of all other buffers the sum
  Redo redo;
  Delta deltas[kBufferDeltas];
  uint64_t frees;  // likewise
  uint64_t reserved2[3];
};
static_assert(sizeof(BufferRecord) == 1024);

// ---- Live samples -------------------------------------------------------------------------------
// A sampled block that is not freed yet. Written: state=kWriting|generation, fields, state=kReady|generation. Freed:
// state CASed to kFree with the next generation before the real free runs. Where memory runs short the weight of a live
// record may grow, or the record go without a free (live_thinning.h).
struct LiveRecord {
  uint32_t state;  // (generation << 2) | RecordState
  uint32_t site;
  uint64_t address;
  uint64_t size;     // bytes the caller asked for
  uint64_t weight;   // bytes this sample stands for: S/(1-exp(-S/R)), rounded; == size in exact mode
  uint64_t time_ns;  // allocated at, since Header::start_monotonic_ns
  uint32_t thread;
  uint32_t context;  // string: the Java method that was being compiled; 0 = none
};
static_assert(sizeof(LiveRecord) == 48);

// ---- Mappings -----------------------------------------------------------------------------------
// What the program has mapped and not unmapped: ranges that do not overlap. Every one, not sampled. Written like a live
// record: state=kWriting|generation, fields, state=kReady|generation. What no hook sees (the loader's and libc's own
// mappings, raw system calls) is not here, and may have replaced what is: a reader that can compares with
// /proc/PID/smaps. Neighbours that say the same are one record, as old as the lower one.
struct MappingRecord {
  uint32_t state;  // (generation << 2) | RecordState
  uint32_t site;   // of kind kSiteMmap
  uint64_t start;  // [start, end)
  uint64_t end;
  uint64_t time_ns;  // mapped at, since Header::start_monotonic_ns
  uint32_t thread;
  uint32_t flags;  // MappingFlags
  uint64_t reserved;
};
static_assert(sizeof(MappingRecord) == 48);
// The protection is PROT_READ, PROT_WRITE and PROT_EXEC as last set by mmap or mprotect; without any of them the range
// is reserved, not committed.
enum MappingFlags : uint32_t {
  kMappingProtection = 7,
  kMappingShared = 8,
  kMappingFile = 16,        // of a file; else anonymous
  kMappingNoReserve = 32,   // MAP_NORESERVE
  kMappingBreak = 64,       // by brk or sbrk
  kMappingSegment = 128,    // by shmat
  kMappingAllocator = 256,  // asked for by the allocator behind the hooks, for its own use
};

// ---- Header -------------------------------------------------------------------------------------

enum RunState : uint32_t {
  kRunStarting = 0,
  kRunRecording = 1,
  kRunPaused = 2,
  kRunStopped = 3,  // for good; Counters and stop_reason say why
};
enum StopReason : uint32_t {
  kStopNone = 0,
  kStopFileFull = 1,  // no space left on the file system, or the size limit
  kStopNoRealAllocator = 2,
  kStopInternal = 3,
};
enum EndKind : uint32_t {
  kEndUnknown = 0,  // running, or lost: ask whether the pid still maps the file
  kEndExit = 1,     // exit handlers ran (status unknown to the target itself)
  kEndStatus = 2,   // a parent saw exit status Outcome::end_value
  kEndSignal = 3,   // a parent saw signal Outcome::end_value
  kEndExec = 4,     // replaced by another program
};

// Written from outside by `cadastre pause|resume|set`; the target reads it when a thread's countdown ends (at most
// every 1 MiB).
struct Control {
  uint32_t paused;
  uint32_t reserved;
  uint64_t interval_bytes;  // 0 = as started, doubled Counters::interval_doublings times
};
static_assert(sizeof(Control) == 16);

// Written by the target at a clean exit and, with authority, by `cadastre run` and `cadastre watch`.
struct Outcome {
  uint32_t end;  // EndKind
  int32_t end_value;
  uint64_t end_realtime_ns;
  uint64_t peak_rss_bytes;  // as the parent saw it (ru_maxrss); 0 = not known
  uint32_t saved;           // 1 = `run` or `watch` made its final copy: `keep=` may remove this file
  uint32_t awaited;         // 1 = set at start by what runs under `cadastre run`: somebody means to save it
};
static_assert(sizeof(Outcome) == 32);

// How near to its limit the process was when it was last looked at. Written from outside: by `cadastre run` into the
// live file now and then, by `cadastre watch` into what it saves. It outlives an OOM kill that takes everybody who
// could tell of it.
struct MemoryNote {
  uint64_t used_bytes;   // of a cgroup: its working set (usage without inactive file pages); else the process's RSS
  uint64_t limit_bytes;  // 0 = none is known
  uint64_t realtime_ns;  // when; 0 = never
  uint32_t is_of_cgroup;
  uint32_t oom_kills;  // that the cgroup has counted since the process was first looked at
};
static_assert(sizeof(MemoryNote) == 32);

// Losses. Every one is shown by the report. Monotonic; relaxed atomic adds.
struct Counters {
  uint64_t samples;              // recorded by threads without a buffer; the others' stand in BufferRecord
  uint64_t dropped_live_full;    // no live slot or index room: the block is not in the profile
  uint64_t dropped_buffer_full;  // no thread buffer could be had: volume not counted
  uint64_t sites_overflowed;     // samples charged to "[stack table full]"
  uint64_t stacks_truncated;     // samples whose stack is cut (see SiteFlags)
  uint64_t missed_frees;         // a new block lay where a recorded one had been: its free was not seen
  uint64_t nested_skipped;       // allocations made while this thread was inside a hook (signal handlers)
  uint64_t strings_full;
  uint64_t threads_full;
  uint64_t libraries_full;
  uint64_t interval_doublings;    // because memory ran short
  uint64_t frees;                 // recorded blocks that were freed, as samples
  uint64_t dropped_weight_bytes;  // sum of the weights of dropped samples
  uint64_t mappings_full;         // no room for a mapping, or for a piece of one that was split
  uint64_t mapping_events_lost;   // a mapping came or went unnoticed: the queue was full
  uint64_t reserved[17];
};
static_assert(sizeof(Counters) == 256);

enum WalkerState : uint32_t {
  kWalkerNoJvm = 0,
  kWalkerActive = 1,
  kWalkerUnusable = 2,  // a JVM, but JvmFacts::missing is not in its tables: native frames only
};

// Anonymous memory of the interposer's own, in the order in which it was reserved. bytes == 0: none.
struct OwnMemory {
  uint64_t start;
  uint64_t bytes;
};
static_assert(sizeof(OwnMemory) == 16);
inline constexpr uint32_t kOwnMemoryRanges = 64;

// The JVM in the process, if there is one.
struct JvmFacts {
  uint32_t walker;     // WalkerState; written last
  uint32_t feature;    // JDK 8, 11, 17, ...; 0 = not known
  uint32_t version;    // string: libjvm's own
  uint32_t missing;    // string: "Type::_field"
  uint32_t collector;  // string: "G1", "serial", ...
  uint32_t reserved;
};
static_assert(sizeof(JvmFacts) == 24);
// What `cadastre pause|resume|set` did so far, for the report. Written by them and, for start=paused, once by the
// target, which never reads it.
struct ControlLog {
  uint64_t paused_since_realtime_ns;  // of the pause that lasts; 0 = none
  uint64_t first_pause_realtime_ns;   // when the first pause began
  uint64_t last_resume_realtime_ns;   // when the last finished one ended
  uint64_t paused_ns;                 // length of all finished ones
  uint32_t pauses;                    // finished ones
  uint32_t interval_changes;          // by `set`; what the target doubled is in Counters
  uint64_t reserved[3];
};
static_assert(sizeof(ControlLog) == 64);

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // sizeof(Header): offset of the first region
  uint64_t file_bytes;
  uint32_t region_count;
  uint32_t run_state;    // RunState
  uint32_t stop_reason;  // StopReason
  uint32_t pid;
  uint64_t pid_namespace;        // inode of /proc/self/ns/pid; 0 = not known
  uint64_t process_start_ticks;  // field 22 of /proc/self/stat; 0 = not known. With pid: is it still the same process?
  uint64_t start_realtime_ns;    // first sample's moment is later; this is when recording was armed (process start)
  uint64_t start_monotonic_ns;   // CLOCK_MONOTONIC at the same moment
  uint8_t session_id[16];        // random
  uint64_t interval_bytes;       // at start; 1 = exact mode
  uint64_t seed;                 // 0 = random
  uint64_t memory_bytes;         // memory=
  uint32_t exe;                  // string: path of /proc/self/exe
  uint32_t command;              // string: arguments, NUL-separated, as `command=` allows
  uint32_t host;                 // string
  uint32_t labels;               // string: "K:V" pairs, newline-separated
  uint32_t allocator;            // string: file name of the library whose malloc serves the calls
  uint32_t allocator_path;       // string: its path
  uint32_t expect;               // string: `expect=`
  uint32_t options;              // string: CADASTRE_OPTIONS as read
  uint64_t live_total_bytes;     // sum of weights of live samples now (relaxed)
  uint64_t peak_total_bytes;     // highest value of it
  uint64_t peak_epoch;           // counts peaks; see SiteRecord
  uint64_t peak_ns;              // when, since start_monotonic_ns
  // A copy made by `cadastre snapshot`, `run` or `watch` fills these; zero in the live file.
  uint32_t is_snapshot;
  uint32_t is_incomplete;               // 1 = made by `cadastre symbolize` from a file that was cut or damaged
  uint64_t snapshot_begin_realtime_ns;  // the copy window
  uint64_t snapshot_end_realtime_ns;
  uint64_t snapshot_rss_bytes;  // VmRSS of the target at that moment; 0 = not known
  uint64_t last_sample_ns;      // time of the newest sample, since start_monotonic_ns; at most 1 ms old
  char label[64];               // the snapshot's label, NUL-padded
  Region regions[kRegionCapacity];
  Control control;
  Outcome outcome;
  Counters counters;
  ControlLog control_log;
  JvmFacts jvm;
  MemoryNote memory_note;
  OwnMemory own_memory[kOwnMemoryRanges];
  uint64_t packed_offset;  // of kPackedVersion: where the blocks begin. The strings that this header names lie before.
  uint8_t padding[4096 - 2120];
};
static_assert(sizeof(Header) == 4096);

}  // namespace cadastre::format

#endif  // CADASTRE_INTERPOSER_PROFILE_FORMAT_H_
