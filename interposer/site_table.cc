#include "interposer/site_table.h"

#include <string.h>

#include "interposer/growing_index.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"

namespace cadastre {
namespace {

using format::SiteRecord;

GrowingIndex sites_by_hash;
uint32_t next_site = format::kSiteOverflow + 1;
uint64_t next_frame = 0;

// Each step waits for the one before (6 cycles), so four chains go side by side. Mixing steps of MurmurHash3's
// finalizer.
constexpr uint64_t kMix = 0xff51afd7ed558ccdull;

uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kMix;
  return hash ^ (hash >> 33);
}

uint64_t HashFrames(const uint64_t* frames, uint32_t count, uint32_t kind, uint32_t flags) {
  uint64_t hash = 0x9e3779b97f4a7c15ull * (count + 1) + kind * 0x10001 + flags;
  uint64_t a = 1, b = 2, c = 3, d = 4;  // not an array: it would lie in memory
  uint32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    a = Mix(a, frames[i]);
    b = Mix(b, frames[i + 1]);
    c = Mix(c, frames[i + 2]);
    d = Mix(d, frames[i + 3]);
  }
  for (; i < count; i++) hash = Mix(hash, frames[i]);
  return Mix(Mix(Mix(Mix(hash, a), b), c), d);
}

struct Stack {
  const uint64_t* frames;
  uint32_t count, kind, flags;
  uint64_t hash;
};

bool Equals(const SiteRecord& site, const Stack& stack) {
  // Bounds come from our own capacity, not from the file's word of its own length.
  return site.hash == stack.hash && site.frame_count == stack.count && site.kind == stack.kind &&
         site.flags == stack.flags && site.frame_start <= g_profile.frame_capacity &&
         stack.count <= g_profile.frame_capacity - site.frame_start &&
         memcmp(g_profile.frames + site.frame_start, stack.frames, stack.count * sizeof(uint64_t)) == 0;
}

// Writes a new record; 0 if there is no room.
uint32_t WriteSite(const Stack& stack) {
  const uint32_t count = stack.count;
  if (__atomic_load_n(&next_site, __ATOMIC_RELAXED) >= g_profile.site_capacity) return 0;
  uint64_t start = __atomic_load_n(&next_frame, __ATOMIC_RELAXED);
  do {
    if (count > g_profile.frame_capacity || start > g_profile.frame_capacity - count) return 0;
  } while (!__atomic_compare_exchange_n(&next_frame, &start, start + count, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  uint32_t site = __atomic_fetch_add(&next_site, 1, __ATOMIC_RELAXED);
  if (site >= g_profile.site_capacity) return 0;
  SiteRecord* record = &g_profile.sites[site];
  if (!ProfileEnsure(record, sizeof(*record))) return 0;
  if (count > 0 && !ProfileEnsure(g_profile.frames + start, count * sizeof(uint64_t))) return 0;
  record->state = format::kWriting;
  record->frame_count = count;
  record->frame_start = start;
  record->hash = stack.hash;
  record->kind = stack.kind;
  record->flags = stack.flags;
  record->peak_epoch = __atomic_load_n(&g_profile.header->peak_epoch, __ATOMIC_RELAXED);
  memcpy(g_profile.frames + start, stack.frames, count * sizeof(uint64_t));
  __atomic_store_n(&record->state, format::kReady, __ATOMIC_RELEASE);
  return site;
}

uint32_t Overflow() {
  __atomic_fetch_add(&g_profile.header->counters.sites_overflowed, 1, __ATOMIC_RELAXED);
  return format::kSiteOverflow;
}

// A site that changes for the first time since the last peak keeps what it held at that moment.
void KeepPeakValue(SiteRecord* site) {
  uint64_t epoch = __atomic_load_n(&g_profile.header->peak_epoch, __ATOMIC_ACQUIRE);
  uint64_t seen = __atomic_load_n(&site->peak_epoch, __ATOMIC_RELAXED);
  if (seen == epoch) return;
  int64_t live = __atomic_load_n(&site->live_bytes, __ATOMIC_RELAXED);
  if (__atomic_compare_exchange_n(&site->peak_epoch, &seen, epoch, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    __atomic_store_n(&site->live_at_peak_bytes, live, __ATOMIC_RELEASE);
  }
}

}  // namespace

bool SiteTableInit(uint32_t capacity) {
  if (!sites_by_hash.Init(capacity) || !ProfileEnsure(&g_profile.sites[format::kSiteOverflow], sizeof(SiteRecord)))
    return false;
  g_profile.sites[format::kSiteOverflow].state = format::kReady;
  return true;
}

uint32_t SiteIntern(const uint64_t* frames, uint32_t frame_count, uint32_t kind, uint32_t flags) {
  const Stack stack = {frames, frame_count, kind, flags, HashFrames(frames, frame_count, kind, flags)};
  uint32_t own = 0;
  const uint32_t site = sites_by_hash.FindOrAdd(
      stack.hash, [&](uint32_t other) { return Equals(g_profile.sites[other], stack); },
      [&] { return own = WriteSite(stack); });
  if (own != 0 && site != own) __atomic_store_n(&g_profile.sites[own].state, format::kFree, __ATOMIC_RELEASE);
  return site != 0 ? site : Overflow();
}

void SiteNoteThread(uint32_t site, uint32_t thread) {
  uint32_t* first = &g_profile.sites[site].first_thread;
  if (__atomic_load_n(first, __ATOMIC_RELAXED) == 0) __atomic_store_n(first, thread, __ATOMIC_RELAXED);
}

void SiteFreed(uint32_t site, bool by_reaper, int frees) {
  SiteRecord* record = &g_profile.sites[site];
  __atomic_fetch_add(&record->frees, static_cast<uint32_t>(frees), __ATOMIC_RELAXED);
  if (by_reaper) __atomic_fetch_add(&record->frees_by_reaper, static_cast<uint32_t>(frees), __ATOMIC_RELAXED);
}

void SiteLiveAdded(uint32_t site, uint64_t weight_bytes, uint64_t now_ns) {
  SiteRecord* record = &g_profile.sites[site];
  format::Header* header = g_profile.header;
  KeepPeakValue(record);
  const int64_t weight = static_cast<int64_t>(weight_bytes);
  int64_t live = __atomic_add_fetch(&record->live_bytes, weight, __ATOMIC_RELAXED);
  int64_t highest = __atomic_load_n(&record->own_peak_bytes, __ATOMIC_RELAXED);
  while (live > highest && !__atomic_compare_exchange_n(&record->own_peak_bytes, &highest, live, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
  }
  uint64_t total = __atomic_add_fetch(&header->live_total_bytes, weight_bytes, __ATOMIC_RELAXED);
  uint64_t peak = __atomic_load_n(&header->peak_total_bytes, __ATOMIC_RELAXED);
  while (total > peak) {
    if (__atomic_compare_exchange_n(&header->peak_total_bytes, &peak, total, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      __atomic_store_n(&header->peak_ns, now_ns, __ATOMIC_RELAXED);
      __atomic_fetch_add(&header->peak_epoch, 1, __ATOMIC_ACQ_REL);
      break;
    }
  }
}

void SiteLiveReweighed(uint32_t site, uint64_t more_bytes) {
  SiteRecord* record = &g_profile.sites[site];
  KeepPeakValue(record);
  __atomic_add_fetch(&record->live_bytes, static_cast<int64_t>(more_bytes), __ATOMIC_RELAXED);
  __atomic_add_fetch(&g_profile.header->live_total_bytes, more_bytes, __ATOMIC_RELAXED);
}

void SiteLiveRemoved(uint32_t site, uint64_t weight_bytes) {
  SiteRecord* record = &g_profile.sites[site];
  KeepPeakValue(record);
  __atomic_sub_fetch(&record->live_bytes, static_cast<int64_t>(weight_bytes), __ATOMIC_RELAXED);
  __atomic_sub_fetch(&g_profile.header->live_total_bytes, weight_bytes, __ATOMIC_RELAXED);
}

}  // namespace cadastre
