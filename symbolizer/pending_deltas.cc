#include "symbolizer/pending_deltas.h"

#include <algorithm>
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

}  // namespace

uint64_t ForEachPendingDelta(const format::BufferRecord& buffer,
                             absl::FunctionRef<const format::SiteRecord*(uint32_t)> site,
                             absl::FunctionRef<void(const format::Delta&)> add) {
  // A buffer that was given back may still hold what its owner had no time to apply: state says who owns it, not what
  // is in it.
  uint32_t pending = buffer.head - buffer.tail;  // both count up for ever and wrap together
  if (pending == 0) return 0;
  if (pending > format::kBufferDeltas) return 1;
  const bool under_way = buffer.redo.armed == 1 && buffer.redo.tail == buffer.tail;
  const uint32_t run = std::max(buffer.redo.run, 1u);
  uint64_t torn = 0;
  for (uint32_t position = buffer.tail; position != buffer.head; position++) {
    format::Delta delta = buffer.deltas[position % format::kBufferDeltas];
    const format::SiteRecord* record = site(delta.site);
    if (record == nullptr || !std::isfinite(delta.variance) || delta.variance < 0) {
      torn++;
      continue;
    }
    if (under_way && position - buffer.tail < run) {
      if (buffer.redo.field >= format::kDeltaFields || run > pending ||
          delta.site != buffer.deltas[buffer.tail % format::kBufferDeltas].site) {
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
