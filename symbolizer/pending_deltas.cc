#include "symbolizer/pending_deltas.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace cadastre {
namespace {

uint64_t CounterOf(const format::SiteRecord& site, uint32_t field) {
  switch (field) {
    case format::kDeltaSamples:
      return site.samples;
    case format::kDeltaCount:
      return site.count_fixed;
    case format::kDeltaBytes:
      return site.allocated_bytes;
    default: {
      uint64_t bits;
      memcpy(&bits, &site.allocated_variance, sizeof(bits));
      return bits;
    }
  }
}

// A delta that adds nothing to a counter leaves it equal to the old value, and counting it again adds nothing: no
// special case.
void DropAppliedFields(const format::Redo& redo, const format::SiteRecord& site, format::Delta* delta) {
  bool current_applied = CounterOf(site, redo.field) != redo.old_value;
  uint32_t applied = redo.field + (current_applied ? 1 : 0);
  if (applied > format::kDeltaSamples) delta->samples = 0;
  if (applied > format::kDeltaCount) delta->count_fixed = 0;
  if (applied > format::kDeltaBytes) delta->bytes = 0;
  if (applied > format::kDeltaVariance) delta->variance = 0;
}

// Which deltas are being applied, the lowest bit for the one at the tail.
uint32_t PlacesOf(const format::Redo& redo) {
  if ((redo.places & format::kRedoPlaces) != 0) return redo.places & ~format::kRedoPlaces;
  return static_cast<uint32_t>((1ull << std::clamp(redo.places, 1u, 31u)) - 1);
}

}  // namespace

uint64_t ForEachPendingDelta(const format::BufferRecord& buffer,
                             absl::FunctionRef<const format::SiteRecord*(uint32_t)> site,
                             absl::FunctionRef<void(const format::Delta&)> add) {
  // A buffer that was given back may still hold what its owner had no time to apply: state says who owns it, not what
  // is in it.
  uint32_t pending = buffer.head - buffer.tail;  // both count up for ever and wrap together
  if (pending == 0) return 0;
  if (pending > format::kBufferDeltas) return 1;
  const uint32_t all = (1u << pending) - 1;
  const bool under_way = buffer.redo.tail == buffer.tail;
  const uint32_t applied = under_way ? buffer.applied : 0;
  const uint32_t places = under_way && buffer.redo.armed == 1 ? PlacesOf(buffer.redo) & ~applied : 0;
  const uint32_t one_of_them =
      buffer.deltas[(buffer.tail + (places != 0 ? std::countr_zero(places) : 0)) % format::kBufferDeltas].site;
  uint64_t torn = 0;
  for (uint32_t place = 0; place < pending; place++) {
    if ((applied >> place & 1) != 0) continue;
    format::Delta delta = buffer.deltas[(buffer.tail + place) % format::kBufferDeltas];
    const format::SiteRecord* record = site(delta.site);
    if (record == nullptr || !std::isfinite(delta.variance) || delta.variance < 0) {
      torn++;
      continue;
    }
    if ((places >> place & 1) != 0) {
      if (buffer.redo.field >= format::kDeltaFields || (places & ~all) != 0 || delta.site != one_of_them) {
        torn++;
        continue;
      }
      DropAppliedFields(buffer.redo, *record, &delta);
    }
    add(delta);
  }
  return torn;
}

}  // namespace cadastre
