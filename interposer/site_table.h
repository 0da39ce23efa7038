// The site table: distinct stacks, interned. A site is written once into the profile and then only its counters move.
//
// Found through a GrowingIndex. Two threads that bring the same new stack at the same time end up with the same site
// (the loser's record is given up, state 0). Thread- and signal-safety: lock-free.
#ifndef CADASTRE_INTERPOSER_SITE_TABLE_H_
#define CADASTRE_INTERPOSER_SITE_TABLE_H_

#include <stdint.h>

#include "interposer/profile_file.h"

namespace cadastre {

bool SiteTableInit(uint32_t capacity);

// The index of the site, or format::kSiteOverflow where there is no room for a new one (counted).
uint32_t SiteIntern(const uint64_t* frames, uint32_t frame_count, uint32_t kind, uint32_t flags);

// Brings what the functions below touch on its way into the cache.
inline void SitePrefetch(uint32_t site) {
  __builtin_prefetch(&g_profile.sites[site].live_bytes, 1);
  __builtin_prefetch(&g_profile.sites[site].first_thread, 1);
}

// A sample of this thread (ThreadRecord) belongs to the site.
void SiteNoteThread(uint32_t site, uint32_t thread);

// `frees` (1, or -1 to take it back) of its sampled blocks, by a reaper (ThreadIsReaper) or not.
void SiteFreed(uint32_t site, bool by_reaper, int frees);

// Live bytes of a site and of the whole process went up or down by the weight of one sample; keeps the peak
// (profile_format.h, SiteRecord).
void SiteLiveAdded(uint32_t site, uint64_t weight_bytes, uint64_t now_ns);
// Thinning has made a live sample stand for more. No new peak: nothing was allocated.
void SiteLiveReweighed(uint32_t site, uint64_t more_bytes);
void SiteLiveRemoved(uint32_t site, uint64_t weight_bytes);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_SITE_TABLE_H_
