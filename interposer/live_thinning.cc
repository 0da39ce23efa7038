#include "interposer/live_thinning.h"

#include "interposer/live_table.h"
#include "interposer/sampler.h"
#include "interposer/site_table.h"

namespace cadastre {
namespace {

uint64_t pass;  // upper half: slots of the pass; lower half: the next one. Lower >= upper: no pass
uint64_t pass_interval;

void ThinSlot(uint32_t slot, uint64_t interval, uint64_t* random) {
  LiveSlot seen;
  if (!LiveLook(slot, &seen)) return;
  const uint64_t weight = SampleWeight(seen.sample.size, interval);
  if (seen.sample.weight >= weight) return;
  const double uniform = static_cast<double>(NextRandom(random) >> 11) * 0x1p-53;
  if (uniform * static_cast<double>(weight) < static_cast<double>(seen.sample.weight)) {
    if (LiveReweigh(seen, weight)) SiteLiveReweighed(seen.sample.site, weight - seen.sample.weight);
  } else {
    LiveShare removed;
    if (LiveForget(seen, slot, &removed)) SiteLiveRemoved(removed.site, removed.weight);
  }
}

}  // namespace

void ThinningStart(uint64_t interval_bytes) {
  __atomic_store_n(&pass_interval, interval_bytes, __ATOMIC_RELAXED);
  __atomic_store_n(&pass, static_cast<uint64_t>(LiveSlotsUsed()) << 32, __ATOMIC_RELEASE);
}

bool ThinningStep(uint64_t* random) {
  uint64_t now = __atomic_load_n(&pass, __ATOMIC_ACQUIRE);
  uint32_t begin, end;
  do {
    begin = static_cast<uint32_t>(now);
    end = static_cast<uint32_t>(now >> 32);
    if (begin >= end) return false;
  } while (!__atomic_compare_exchange_n(&pass, &now, now + kSlotsPerStep, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  const uint64_t interval = __atomic_load_n(&pass_interval, __ATOMIC_RELAXED);
  for (uint32_t slot = begin; slot < end && slot - begin < kSlotsPerStep; slot++) ThinSlot(slot, interval, random);
  return end - begin <= kSlotsPerStep;
}

uint32_t NextDoubling(uint32_t count, uint32_t capacity) {
  const uint32_t half = capacity / 2;
  if (count < half / 4 * 3) return half;
  if (count >= capacity / 4 * 3) return count;  // little was gained: at once again
  return count + (capacity - count + 1) / 2;
}

}  // namespace cadastre
