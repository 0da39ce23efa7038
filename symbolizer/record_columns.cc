#include "symbolizer/record_columns.h"

#include <stddef.h>
#include <string.h>

#include <vector>

#include "absl/types/span.h"
#include "symbolizer/packed_text.h"

namespace cadastre {
namespace {

using format::LiveRecord;
using format::MappingRecord;
using format::SiteRecord;

// What is written of a field: the difference from ...
enum class From : uint8_t {
  kZero,      // itself: few values, each of them often
  kPrevious,  // the same field of the record before
  kField,     // another field of the same record
  kBlocks,    // that field times 65536: an estimated count from a number of samples
  kEnd,       // where the stack of the record before ends
};

struct Field {
  uint16_t offset, bytes;
  From from = From::kZero;
  uint16_t other = 0;  // its offset
};

#define FIELD(record, name) offsetof(record, name), sizeof(record::name)

// In this order; a field that others are told from stands before them. `state` comes first and is written without its
// generation. What is not named is 0 when it comes back.
constexpr Field kLiveFields[] = {
    {FIELD(LiveRecord, state)},
    {FIELD(LiveRecord, site)},
    {FIELD(LiveRecord, address), From::kPrevious},
    {FIELD(LiveRecord, size)},
    {FIELD(LiveRecord, weight), From::kField, offsetof(LiveRecord, size)},
    {FIELD(LiveRecord, time_ns), From::kPrevious},
    {FIELD(LiveRecord, thread)},
    {FIELD(LiveRecord, context)},
};
constexpr Field kSiteFields[] = {
    {FIELD(SiteRecord, state)},
    {FIELD(SiteRecord, frame_count)},
    {FIELD(SiteRecord, frame_start), From::kEnd},
    {FIELD(SiteRecord, kind)},
    {FIELD(SiteRecord, flags)},
    {FIELD(SiteRecord, samples)},
    {FIELD(SiteRecord, count_fixed), From::kBlocks, offsetof(SiteRecord, samples)},
    {FIELD(SiteRecord, allocated_bytes)},
    {FIELD(SiteRecord, allocated_variance)},
    {FIELD(SiteRecord, live_bytes)},
    {FIELD(SiteRecord, live_at_peak_bytes), From::kField, offsetof(SiteRecord, live_bytes)},
    {FIELD(SiteRecord, peak_epoch), From::kPrevious},
    {FIELD(SiteRecord, own_peak_bytes), From::kField, offsetof(SiteRecord, allocated_bytes)},
    {FIELD(SiteRecord, first_thread)},
    {FIELD(SiteRecord, frees)},
    {FIELD(SiteRecord, frees_by_reaper)},
};
constexpr Field kMappingFields[] = {
    {FIELD(MappingRecord, state)},
    {FIELD(MappingRecord, site)},
    {FIELD(MappingRecord, start), From::kPrevious},
    {FIELD(MappingRecord, end), From::kField, offsetof(MappingRecord, start)},
    {FIELD(MappingRecord, time_ns), From::kPrevious},
    {FIELD(MappingRecord, thread)},
    {FIELD(MappingRecord, flags)},
};
#undef FIELD

struct Layout {
  absl::Span<const Field> fields;
  uint64_t record_bytes = 0;
};

Layout LayoutOf(uint32_t kind) {
  switch (kind) {
    case format::kRegionLive:
      return {kLiveFields, sizeof(LiveRecord)};
    case format::kRegionSites:
      return {kSiteFields, sizeof(SiteRecord)};
    case format::kRegionMappings:
      return {kMappingFields, sizeof(MappingRecord)};
    default:
      return {};
  }
}

uint64_t ValueAt(const char* record, uint64_t offset, uint64_t bytes) {
  uint64_t value = 0;
  memcpy(&value, record + offset, bytes);
  return value;
}

uint64_t ValueOf(const char* record, const Field& field) { return ValueAt(record, field.offset, field.bytes); }

uint64_t ExpectedOf(const char* record, const char* previous, const Field& field) {
  switch (field.from) {
    case From::kZero:
      return 0;
    case From::kPrevious:
      return previous == nullptr ? 0 : ValueOf(previous, field);
    case From::kField:
      return ValueAt(record, field.other, 8);
    case From::kBlocks:
      return ValueAt(record, field.other, 8) << 16;
    case From::kEnd:
      return previous == nullptr ? 0
                                 : ValueAt(previous, offsetof(SiteRecord, frame_start), 8) +
                                       ValueAt(previous, offsetof(SiteRecord, frame_count), 4);
  }
  return 0;
}

// A small difference in either direction is a small number.
uint64_t Folded(uint64_t difference) {
  return (difference << 1) ^ static_cast<uint64_t>(static_cast<int64_t>(difference) >> 63);
}
uint64_t Unfolded(uint64_t folded) { return (folded >> 1) ^ (0 - (folded & 1)); }

uint32_t StateOf(const char* record) { return static_cast<uint32_t>(ValueAt(record, 0, 4)) & format::kStateMask; }

}  // namespace

uint64_t RecordBytesOf(uint32_t kind) { return LayoutOf(kind).record_bytes; }

bool EncodeRecords(uint32_t kind, const char* records, uint64_t count, std::string* text) {
  const Layout layout = LayoutOf(kind);
  std::vector<const char*> used;
  std::string gaps;
  uint64_t next = 0;
  for (uint64_t i = 0; i < count; i++) {
    const char* record = records + i * layout.record_bytes;
    if (StateOf(record) == format::kFree) continue;
    PutVarint(i - next, &gaps);
    next = i + 1;
    used.push_back(record);
  }
  if (used.empty()) return false;
  PutVarint(used.size(), text);
  text->append(gaps);
  for (const Field& field : layout.fields) {
    const char* previous = nullptr;
    for (const char* record : used) {
      if (field.offset == 0) {
        PutVarint(StateOf(record), text);
      } else if (field.from == From::kZero) {
        PutVarint(ValueOf(record, field), text);
      } else {
        PutVarint(Folded(ValueOf(record, field) - ExpectedOf(record, previous, field)), text);
      }
      previous = record;
    }
  }
  return true;
}

bool DecodeRecords(uint32_t kind, const std::string& text, char* records, uint64_t count) {
  const Layout layout = LayoutOf(kind);
  if (layout.record_bytes == 0) return false;
  PackedReader in(text);
  const uint64_t used_count = in.Count(layout.fields.size());
  if (!in.ok() || used_count > count) return false;
  std::vector<char*> used;
  used.reserve(used_count);
  for (uint64_t next = 0; used.size() < used_count; next++) {
    const uint64_t gap = in.Varint();
    if (!in.ok() || gap >= count - next) return false;
    next += gap;
    used.push_back(records + next * layout.record_bytes);
    if (next + 1 == count && used.size() < used_count) return false;
  }
  for (const Field& field : layout.fields) {
    const char* previous = nullptr;
    for (char* record : used) {
      uint64_t value = in.Varint();
      if (field.from != From::kZero) value = Unfolded(value) + ExpectedOf(record, previous, field);
      memcpy(record + field.offset, &value, field.bytes);
      previous = record;
    }
  }
  return in.ok() && in.left() == 0;
}

}  // namespace cadastre
