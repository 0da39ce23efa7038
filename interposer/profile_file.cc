#include "interposer/profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "interposer/private_memory.h"
#include "interposer/profile_name.h"
#include "interposer/raw_syscall.h"

namespace cadastre {

using format::Header;

ProfileView g_profile;

namespace {

// Pages are made present one at a time, and where a region grows as many as it has, up to 64 KiB: one system call per
// some hundred records, and at most as much again as is used; a process that lives for a moment has 8 regions of a
// page. A page costs ten times what a call does.
constexpr uint64_t kChunkBytes = format::kPageBytes, kMostChunksAtOnce = 16;
// The header and the first strings, which every profile has.
constexpr uint64_t kFirstChunks = 2;
// The kernel may ask to try again, and may do so for ever: the program is not kept waiting for pages of ours.
constexpr int kPopulateAttempts = 16;
// Bits, two a chunk; of two threads that ask for one chunk the luckier one is right.
enum ChunkState : uint64_t { kChunkPresent = 1, kChunkFull = 2 };
constexpr uint64_t kChunksPerWord = 32;

char* base;
uint64_t mapped_bytes;
uint64_t* chunk_states;  // private memory: at the usual size of the file one page
uint64_t string_cursor = 1;
uint32_t is_open;
bool all_present;  // old kernels: the whole file was allocated at start
bool may_not_grow;

// The file's last page is no record's: whatever cuts the file, this is gone. After a cut and a new length it is zero.
struct LastPage {
  uint64_t scratch;
  uint64_t cookie;
};
constexpr uint64_t kCookie = 0x646e652065687421;  // "!the end"
LastPage* last_page;

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

bool ChunkHas(uint64_t chunk, ChunkState state) {
  const uint64_t word = __atomic_load_n(&chunk_states[chunk / kChunksPerWord], __ATOMIC_ACQUIRE);
  return (word >> chunk % kChunksPerWord * 2 & state) != 0;
}

void SetChunk(uint64_t chunk, ChunkState state) {
  __atomic_fetch_or(&chunk_states[chunk / kChunksPerWord], state << chunk % kChunksPerWord * 2, __ATOMIC_RELEASE);
}

long PopulateBytes(uint64_t begin, uint64_t bytes) {
  long result = -EAGAIN;
  for (int attempt = 0; attempt < kPopulateAttempts && (result == -EINTR || result == -EAGAIN); attempt++) {
    result =
        RawSyscall(SYS_madvise, reinterpret_cast<long>(base + begin), static_cast<long>(bytes), MADV_POPULATE_WRITE);
  }
  return result;
}

// A disk's file system reads around the page that is touched first. Of a hole it reads zeroes: at a read-ahead of 8 MiB
// half a millisecond for each of the pages that a process begins with, here and there in the file. Later, where regions
// grow without gaps, the same makes a page three times as cheap, for the kernel then takes large folios.
constexpr uint64_t kReadingPaysAfter = 256;  // chunks
uint64_t chunks_made;

void AdviseReading(int advice) {
  RawSyscall(SYS_madvise, reinterpret_cast<long>(base), static_cast<long>(mapped_bytes), advice);
}

void NoteMade(uint64_t count) {
  const uint64_t before = __atomic_fetch_add(&chunks_made, count, __ATOMIC_RELAXED);
  if (before < kReadingPaysAfter && before + count >= kReadingPaysAfter) AdviseReading(MADV_NORMAL);
}

// How many chunks before this one are present, up to the most that are asked for at once.
uint64_t PresentBefore(uint64_t chunk) {
  uint64_t present = 0;
  while (present < kMostChunksAtOnce && present < chunk && ChunkHas(chunk - 1 - present, kChunkPresent)) present++;
  return present;
}

bool Populate(uint64_t chunk) {
  const uint64_t present = PresentBefore(chunk), begin = chunk * kChunkBytes, rest = mapped_bytes - begin;
  uint64_t bytes = kChunkBytes * (present != 0 ? present : 1);
  if (bytes > rest) bytes = rest;
  long result = PopulateBytes(begin, bytes);
  if (result != 0 && bytes > kChunkBytes) {  // there may be room for a part
    bytes = kChunkBytes;
    result = PopulateBytes(begin, bytes);
  }
  for (uint64_t i = chunk; i <= (begin + bytes - 1) / kChunkBytes; i++)
    SetChunk(i, result == 0 ? kChunkPresent : kChunkFull);
  if (result == 0) NoteMade(bytes / kChunkBytes);
  return result == 0;
}

// Shares of the file. The rest goes to live samples. At the default 64 MiB: 2 MiB of strings, 16 Ki threads, 6 Ki
// thread buffers, 21 Ki mappings, 75 Ki sites, 2 Mi frames (28 a site), 630 Ki live samples.
struct Layout {
  format::RegionKind kind;
  uint32_t record_bytes;
  uint64_t share;  // one part in `share` of the file
};
constexpr Layout kLayout[] = {
    {format::kRegionStrings, 8, 32},
    {format::kRegionLibraries, sizeof(format::LibraryRecord), 128},
    {format::kRegionThreads, sizeof(format::ThreadRecord), 64},
    {format::kRegionBuffers, sizeof(format::BufferRecord), 10},
    {format::kRegionMappings, sizeof(format::MappingRecord), 64},
    {format::kRegionSites, sizeof(format::SiteRecord), 8},
    {format::kRegionFrames, 8, 4},
    {format::kRegionLive, sizeof(format::LiveRecord), 0},
};

void LayOut(Header* header, uint64_t file_bytes, bool exact) {
  uint64_t offset = format::kPageBytes;
  for (const Layout& layout : kLayout) {
    uint64_t bytes = layout.share == 0 ? file_bytes - format::kPageBytes - offset : file_bytes / layout.share;
    // Exact mode's cap is set by live blocks, not by threads: buffers and libraries do not grow with it.
    if (exact && layout.kind == format::kRegionBuffers && bytes > (8u << 20)) bytes = 8u << 20;
    if (layout.kind == format::kRegionLibraries && bytes > (4u << 20)) bytes = 4u << 20;
    bytes = bytes / format::kPageBytes * format::kPageBytes;
    header->regions[layout.kind] = {offset, bytes, layout.record_bytes, 0};
    offset += bytes;
  }
  header->region_count = format::kRegionCount;
}

template <typename Record>
void View(const Header* header, format::RegionKind kind, Record** records, uint32_t* capacity) {
  *records = reinterpret_cast<Record*>(base + header->regions[kind].offset);
  uint64_t count = header->regions[kind].bytes / sizeof(Record);
  *capacity = count > 0xfffffff0u ? 0xfffffff0u : static_cast<uint32_t>(count);
}

void FillView(Header* header) {
  g_profile.strings = reinterpret_cast<uint64_t*>(base + header->regions[format::kRegionStrings].offset);
  g_profile.string_units = header->regions[format::kRegionStrings].bytes / 8;
  g_profile.frames = reinterpret_cast<uint64_t*>(base + header->regions[format::kRegionFrames].offset);
  g_profile.frame_capacity = header->regions[format::kRegionFrames].bytes / 8;
  View(header, format::kRegionLibraries, &g_profile.libraries, &g_profile.library_capacity);
  View(header, format::kRegionThreads, &g_profile.threads, &g_profile.thread_capacity);
  View(header, format::kRegionBuffers, &g_profile.buffers, &g_profile.buffer_capacity);
  View(header, format::kRegionMappings, &g_profile.mappings, &g_profile.mapping_capacity);
  View(header, format::kRegionSites, &g_profile.sites, &g_profile.site_capacity);
  View(header, format::kRegionLive, &g_profile.live, &g_profile.live_capacity);
  __atomic_store_n(&g_profile.header, header, __ATOMIC_RELEASE);
}

uint64_t Limit(int which) {
  rlimit limit{};
  if (RawSyscall(SYS_prlimit64, 0, which, 0, reinterpret_cast<long>(&limit)) != 0) return ~0ull;
  return limit.rlim_cur == RLIM_INFINITY ? ~0ull : limit.rlim_cur;
}

// Below this there is no room for one chunk in each region.
constexpr uint64_t kSmallestFileBytes = 1 << 20;
constexpr uint64_t kOldKernelFileBytes = 8 << 20;
// The tables in private memory are half as large again, so that nine tenths of a small address space are the program's.
constexpr uint64_t kAddressSpaceShare = 16;
constexpr char kNoAddressSpace[] = "address space limit (ulimit -v) leaves no room for the profile";
constexpr char kNoData[] = "data size limit (ulimit -d) leaves no room for the profile";

ProfileError MapFile(int fd, uint64_t bytes, bool exact) {
  long result = RawSyscall(SYS_ftruncate, fd, static_cast<long>(bytes));
  if (result != 0) return {"cannot size the profile", static_cast<int>(-result)};
  result = RawSyscall(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (result == -ENOMEM) return {kNoAddressSpace, ENOMEM};
  if (IsSyscallError(result)) return {"cannot map the profile", static_cast<int>(-result)};
  base = reinterpret_cast<char*>(result);
  mapped_bytes = bytes;
  NoteOwnMemory(static_cast<uint64_t>(result), bytes);
  const uint64_t words = RoundUp(bytes, kChunkBytes * kChunksPerWord) / (kChunkBytes * kChunksPerWord);
  chunk_states = ReserveMemory<uint64_t>(RoundUp(words * sizeof(uint64_t), format::kPageBytes));
  if (chunk_states == nullptr) return {"no memory for the profile", ENOMEM};
  RawSyscall(SYS_madvise, reinterpret_cast<long>(base), static_cast<long>(bytes), MADV_DONTDUMP);
  AdviseReading(MADV_RANDOM);
  result = PopulateBytes(0, kFirstChunks * kChunkBytes);
  if (result == -EINVAL || result == -ENOSYS) {
    if (bytes > kOldKernelFileBytes) {
      RawSyscall(SYS_munmap, reinterpret_cast<long>(base), static_cast<long>(bytes));
      base = nullptr;
      return MapFile(fd, kOldKernelFileBytes, exact);
    }
    // Before Linux 5.14 the only way to know that a page can be had is to have it now.
    result = RawSyscall(SYS_fallocate, fd, 0, 0, static_cast<long>(bytes));
    all_present = result == 0;
  }
  last_page = reinterpret_cast<LastPage*>(base + bytes - format::kPageBytes);
  if (result == 0 && !all_present) {
    result = PopulateBytes(bytes - format::kPageBytes, format::kPageBytes);
    for (uint64_t chunk = 0; chunk < kFirstChunks; chunk++) SetChunk(chunk, kChunkPresent);
  }
  if (result != 0) return {"no space for the profile", result == -EFAULT ? ENOSPC : static_cast<int>(-result)};
  last_page->cookie = kCookie;
  LayOut(reinterpret_cast<Header*>(base), bytes, exact);
  return {nullptr, 0};
}

bool KernelCanPopulate() {
  // A wrong length is EINVAL on kernels without the advice and success (nothing to do) on those with it.
  return RawSyscall(SYS_madvise, reinterpret_cast<long>(chunk_states), 0, MADV_POPULATE_WRITE) == 0;
}

}  // namespace

ProfileError ProfileCreate(const ProfileSpec& spec, char* path_out, size_t path_bytes) {
  struct statfs space {};
  long result = RawSyscall(SYS_statfs, reinterpret_cast<long>(spec.directory), reinterpret_cast<long>(&space));
  if (result != 0) return {"cannot use the directory", static_cast<int>(-result)};
  const uint64_t free_bytes = static_cast<uint64_t>(space.f_bavail) * static_cast<uint64_t>(space.f_bsize);
  uint64_t bytes = spec.memory_bytes;
  // A tmpfs mounted without a size reports no blocks at all: then only the cap counts.
  if (bytes == 0) {
    bytes = spec.default_memory_bytes;
    if (space.f_blocks != 0 && free_bytes / 4 < bytes) bytes = free_bytes / 4;
    // The tables beside the profile are private memory, and take as much of ulimit -d.
    const uint64_t of_address_space = Limit(RLIMIT_AS) / kAddressSpaceShare;
    if (of_address_space < bytes) bytes = of_address_space;
    if (of_address_space < kSmallestFileBytes) return {kNoAddressSpace, ENOMEM};
    const uint64_t of_data = Limit(RLIMIT_DATA) / spec.data_share;
    if (of_data < bytes) bytes = of_data;
    if (of_data < kSmallestFileBytes) return {kNoData, ENOMEM};
  }
  if (!KernelCanPopulate() && bytes > kOldKernelFileBytes) bytes = kOldKernelFileBytes;
  const uint64_t limit = Limit(RLIMIT_FSIZE);
  if (bytes > limit) bytes = limit;  // beyond it the kernel sends SIGXFSZ, which kills
  bytes = bytes / format::kPageBytes * format::kPageBytes;
  if (limit < kSmallestFileBytes) return {"file size limit (ulimit -f) leaves no room for the profile", EFBIG};
  if (bytes < kSmallestFileBytes) return {"no space for the profile", ENOSPC};

  const long opened = CreateProfileFile(spec, path_out, path_bytes);
  if (opened == -ENAMETOOLONG) return {"path of the profile is too long", ENAMETOOLONG};
  if (opened < 0) return {"cannot create the profile", static_cast<int>(-opened)};
  const int fd = static_cast<int>(opened);
  ProfileError error = MapFile(fd, bytes, spec.exact);
  // Closed at once: a daemon may close every descriptor and get this number for a file of its own.
  RawSyscall(SYS_close, fd);
  if (error.what != nullptr) {
    ProfileDiscard(path_out);
    return error;
  }
  Header* header = reinterpret_cast<Header*>(base);
  header->version = format::kVersion;
  header->header_bytes = sizeof(Header);
  header->file_bytes = mapped_bytes;
  header->memory_bytes = mapped_bytes;
  NoteOwnMemoryIn(header->own_memory);
  FillView(header);
  return {nullptr, 0};
}

void ProfileDiscard(const char* path) {
  NoteOwnMemoryIn(nullptr);
  if (base != nullptr) RawSyscall(SYS_munmap, reinterpret_cast<long>(base), static_cast<long>(mapped_bytes));
  base = nullptr;
  g_profile = {};
  RawSyscall(SYS_unlinkat, AT_FDCWD, reinterpret_cast<long>(path), 0);
}

void ProfilePublish() {
  memcpy(g_profile.header->magic, format::kMagic, sizeof(format::kMagic));
  __atomic_store_n(&is_open, 1, __ATOMIC_RELEASE);
}

bool ProfileIsOpen() { return __atomic_load_n(&is_open, __ATOMIC_ACQUIRE) != 0; }

bool ProfileIsWhole() {
  // The kernel writes the thread's signal mask, which nothing changes: the cheapest call that touches a page and
  // answers with an error where a touch of ours would be a signal.
  const long result = RawSyscall(SYS_rt_sigprocmask, 0, 0, reinterpret_cast<long>(&last_page->scratch), 8);
  return result == 0 && __atomic_load_n(&last_page->cookie, __ATOMIC_RELAXED) == kCookie;
}

bool ProfileDetach() {
  if (base == nullptr) return true;
  __atomic_store_n(&is_open, 0, __ATOMIC_RELEASE);
  return RawSyscall(SYS_mmap, reinterpret_cast<long>(base), static_cast<long>(mapped_bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == reinterpret_cast<long>(base);
}

bool ProfileContains(const void* address) {
  const char* at = static_cast<const char*>(address);
  return base != nullptr && at >= base && at < base + mapped_bytes;
}

void ProfileGrowAndStop(uint64_t bytes_each) {
  for (const format::Region region : g_profile.header->regions) {  // a copy: others may write to the file
    if (region.offset > mapped_bytes || region.bytes > mapped_bytes - region.offset) continue;
    uint64_t begin = region.offset;
    const uint64_t end = region.offset + region.bytes;
    while (begin < end && !all_present && ChunkHas(begin / kChunkBytes, kChunkPresent))
      begin = (begin / kChunkBytes + 1) * kChunkBytes;
    const uint64_t rest = begin < end ? end - begin : 0;
    if (rest != 0) (void)ProfileEnsure(base + begin, rest < bytes_each ? rest : bytes_each);
  }
  __atomic_store_n(&may_not_grow, true, __ATOMIC_RELAXED);
}

bool ProfileEnsure(const void* address, size_t bytes) {
  if (all_present) return true;
  uint64_t begin = static_cast<uint64_t>(static_cast<const char*>(address) - base);
  uint64_t last = (begin + bytes - 1) / kChunkBytes;
  for (uint64_t chunk = begin / kChunkBytes; chunk <= last; chunk++) {
    if (ChunkHas(chunk, kChunkPresent)) continue;
    if (ChunkHas(chunk, kChunkFull) || __atomic_load_n(&may_not_grow, __ATOMIC_RELAXED) || !Populate(chunk))
      return false;
  }
  return true;
}

uint32_t ProfileAddString(const char* bytes, size_t length) {
  if (length == 0 || g_profile.header == nullptr) return 0;
  uint64_t units = (sizeof(format::StringHeader) + length + 7) / 8;
  uint64_t unit = __atomic_fetch_add(&string_cursor, units, __ATOMIC_RELAXED);
  if (units > g_profile.string_units || unit + units > g_profile.string_units ||
      !ProfileEnsure(g_profile.strings + unit, units * 8)) {
    __atomic_fetch_add(&g_profile.header->counters.strings_full, 1, __ATOMIC_RELAXED);
    return 0;
  }
  auto* header = reinterpret_cast<format::StringHeader*>(g_profile.strings + unit);
  header->length = static_cast<uint32_t>(length);
  memcpy(header + 1, bytes, length);
  __atomic_store_n(&header->check, format::StringCheck(bytes, length), __ATOMIC_RELEASE);
  return static_cast<uint32_t>(unit);
}

}  // namespace cadastre
