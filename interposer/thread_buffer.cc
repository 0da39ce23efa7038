#include "interposer/thread_buffer.h"

#include <string.h>

#include "interposer/fast_math.h"
#include "interposer/profile_file.h"
#include "interposer/thread_table.h"

namespace cadastre {
namespace {

using format::BufferRecord;
using format::Delta;

uint32_t next_buffer;
uint32_t takeover_cursor;
uint32_t sandboxed;

// How many older buffers a new thread asks for a dead owner before it opens a fresh one. With t live threads this costs
// t*kTakeoverTries system calls in all, and n short-lived threads never need more than live threads + kTakeoverTries
// buffers, or kFewBuffers.
constexpr uint32_t kTakeoverTries = 4;
// While there are few, a fresh one is cheaper than the question.
constexpr uint32_t kFewBuffers = 32;

// The word that is exchanged is the owner itself: a reader never sees the buffer between two owners.
bool TakeOver(uint32_t index, uint32_t tid) {
  BufferRecord* record = &g_profile.buffers[index];
  uint32_t owner = __atomic_load_n(&record->owner_tid, __ATOMIC_ACQUIRE);
  if (owner != tid && !IsDeadThread(owner)) return false;
  if (!__atomic_compare_exchange_n(&record->owner_tid, &owner, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  // Everything that the dead thread wrote lies before its last release of one of these.
  __atomic_load_n(&record->state, __ATOMIC_ACQUIRE);
  __atomic_load_n(&record->head, __ATOMIC_ACQUIRE);
  return true;
}

void OwnRecord(ThreadState* state, uint32_t index, uint32_t tid) {
  BufferRecord* record = &g_profile.buffers[index];
  __atomic_store_n(&record->owner_tid, tid, __ATOMIC_RELEASE);
  record->thread = state->thread;
  __atomic_store_n(&record->state, format::kReady, __ATOMIC_RELEASE);
  state->buffer = index + 1;
}

void AcquireBuffer(ThreadState* state, uint32_t tid) {
  const uint32_t in_use = __atomic_load_n(&next_buffer, __ATOMIC_ACQUIRE);
  const uint32_t used = in_use < g_profile.buffer_capacity ? in_use : g_profile.buffer_capacity;
  const bool is_few = used < kFewBuffers && used < g_profile.buffer_capacity;
  for (uint32_t i = 0; !is_few && i < kTakeoverTries && i < used && tid != 0; i++) {
    uint32_t index = __atomic_fetch_add(&takeover_cursor, 1, __ATOMIC_RELAXED) % used;
    if (TakeOver(index, tid)) return OwnRecord(state, index, tid);
  }
  if (in_use < g_profile.buffer_capacity) {
    uint32_t index = __atomic_fetch_add(&next_buffer, 1, __ATOMIC_ACQ_REL);
    if (index < g_profile.buffer_capacity && ProfileEnsure(&g_profile.buffers[index], sizeof(BufferRecord))) {
      return OwnRecord(state, index, tid);
    }
  }
  state->notes |= kLacksBuffer;
}

uint64_t AsBits(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

double AsDouble(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

template <typename Add>
__attribute__((always_inline)) inline void ApplyField(BufferRecord* record, uint64_t* counter, format::DeltaField field,
                                                      Add add) {
  uint64_t old_value = __atomic_load_n(counter, __ATOMIC_RELAXED), new_value;
  do {
    new_value = add(old_value);
    record->redo.old_value = old_value;
    record->redo.new_value = new_value;
    __atomic_store_n(&record->redo.field, field, __ATOMIC_RELEASE);
    __atomic_store_n(&record->redo.armed, 1, __ATOMIC_RELEASE);
  } while (!__atomic_compare_exchange_n(counter, &old_value, new_value, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

void ApplyFields(BufferRecord* record, const Delta& delta) {
  format::SiteRecord* site = &g_profile.sites[delta.site];
  ApplyField(record, &site->samples, format::kDeltaSamples, [&](uint64_t old) { return old + delta.samples; });
  ApplyField(record, &site->count_fixed, format::kDeltaCount, [&](uint64_t old) { return old + delta.count_fixed; });
  ApplyField(record, &site->allocated_bytes, format::kDeltaBytes, [&](uint64_t old) { return old + delta.bytes; });
  if (delta.variance == 0) return;  // exact samples have none
  ApplyField(record, reinterpret_cast<uint64_t*>(&site->allocated_variance), format::kDeltaVariance,
             [&](uint64_t old) { return AsBits(AsDouble(old) + delta.variance); });
}

static_assert(format::kBufferDeltas < 31, "a bit for each delta, and kRedoPlaces");

const Delta& DeltaAt(const BufferRecord* record, uint32_t first, uint32_t place) {
  const uint32_t at = first + place;
  return record->deltas[at < format::kBufferDeltas ? at : at - format::kBufferDeltas];
}

// Places by their delta's site, modulo kSiteGroups.
constexpr uint32_t kSiteGroups = 32;
void GroupBySite(const BufferRecord* record, uint32_t first, uint32_t places, uint32_t* groups) {
  for (; places != 0; places &= places - 1) {
    const auto place = static_cast<uint32_t>(__builtin_ctz(places));
    groups[DeltaAt(record, first, place).site % kSiteGroups] |= 1u << place;
  }
}

// The sum of the delta at `place` and of all `others` of its site; which those are is returned. A loop that allocates
// brings few sites, again and again.
uint32_t TakeSite(const BufferRecord* record, uint32_t first, uint32_t place, uint32_t others, Delta* sum) {
  // A copy: what is in the file decides nothing about where we write.
  *sum = DeltaAt(record, first, place);
  uint32_t taken = 1u << place;
  for (others &= ~taken; others != 0; others &= others - 1) {
    const auto other = static_cast<uint32_t>(__builtin_ctz(others));
    const Delta delta = DeltaAt(record, first, other);
    if (delta.site != sum->site) continue;
    sum->samples += delta.samples;
    sum->count_fixed += delta.count_fixed;
    sum->bytes += delta.bytes;
    sum->variance += delta.variance;
    taken |= 1u << other;
  }
  return taken;
}

// head and tail lie in the file, which others may write to: what they say is believed as far as the ring is long.
void Apply(BufferRecord* record) {
  const OwnFloatingPoint floating_point;
  const uint32_t head = record->head, tail = record->tail;
  if (head - tail <= format::kBufferDeltas) {
    if (record->redo.tail != tail) {
      __atomic_store_n(&record->applied, 0, __ATOMIC_RELEASE);
      __atomic_store_n(&record->redo.tail, tail, __ATOMIC_RELEASE);
    }
    // Some are applied already where this was left in its middle.
    uint32_t left = ((1u << (head - tail)) - 1) & ~record->applied;
    const uint32_t first = tail % format::kBufferDeltas;
    uint32_t groups[kSiteGroups] = {};
    GroupBySite(record, first, left, groups);
    while (left != 0) {
      const auto place = static_cast<uint32_t>(__builtin_ctz(left));
      Delta sum;
      const uint32_t group = groups[DeltaAt(record, first, place).site % kSiteGroups];
      const uint32_t places = TakeSite(record, first, place, group & left, &sum);
      record->redo.places = format::kRedoPlaces | places;
      if (sum.site < g_profile.site_capacity) ApplyFields(record, sum);  // sites come from our own table only
      left &= ~places;
      __atomic_store_n(&record->applied, record->applied | places, __ATOMIC_RELEASE);
      __atomic_store_n(&record->redo.armed, 0, __ATOMIC_RELEASE);
    }
  } else {
    __atomic_fetch_add(&g_profile.header->counters.dropped_buffer_full, 1, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&record->tail, head, __ATOMIC_RELEASE);
}

}  // namespace

uint64_t SampleCountFixed(uint64_t size, uint64_t weight) {
  if (size == 0 || size == weight) return 65536;
  return static_cast<uint64_t>(static_cast<double>(weight) / static_cast<double>(size) * 65536.0 + 0.5);
}

double SampleVariance(uint64_t size, uint64_t weight) {
  if (size == weight) return 0;
  const double w = static_cast<double>(weight), s = static_cast<double>(size);
  return w * (w - s);
}

void BufferPrepare(ThreadState* state) {
  if (state->buffer == 0 && (state->notes & kLacksBuffer) == 0) AcquireBuffer(state, OwnTid());
}

void BufferAppend(ThreadState* state, const Delta& delta) {
  if (state->buffer == 0) {
    __atomic_fetch_add(&g_profile.header->counters.dropped_buffer_full, 1, __ATOMIC_RELAXED);
    return;
  }
  BufferRecord* record = &g_profile.buffers[state->buffer - 1];
  if (record->head - record->tail >= format::kBufferDeltas) Apply(record);
  record->deltas[record->head % format::kBufferDeltas] = delta;
  __atomic_store_n(&record->head, record->head + 1, __ATOMIC_RELEASE);
}

void BufferEnterSandbox() { __atomic_store_n(&sandboxed, 1, __ATOMIC_RELAXED); }
bool IsSandboxed() { return __atomic_load_n(&sandboxed, __ATOMIC_RELAXED) != 0; }

}  // namespace cadastre
