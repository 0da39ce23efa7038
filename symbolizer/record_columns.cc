#include "symbolizer/record_columns.h"

#include <stddef.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "absl/types/span.h"

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
  kStackEnd,  // where the stack of the record before ends
  kBlockEnd,  // where glibc would put the next block behind the one of the record before
};

enum class Order : uint8_t {
  kAsTheyLie,
  kBySite,  // of a live sample: what is allocated at one site has one size, and often one time
};

// What the difference is told in, rounded down; another column has what is left.
enum class Unit : uint8_t {
  kOne,      // no other column
  kSixteen,  // what addresses are multiples of
  kSample,   // of a site: how many samples it had
  kBlock,    // of a site: bytes a sample. Most sites allocate blocks of one size, and hold a few of them.
};

struct Field {
  uint16_t offset, bytes;
  From from = From::kZero;
  uint16_t other = 0;  // its offset
  Order order = Order::kAsTheyLie;
  Unit unit = Unit::kOne;
  bool numbered = false;  // few values, each of them long
};

#define FIELD(record, name) .offset = offsetof(record, name), .bytes = sizeof(record::name)

// In this order; a field that others are told from, or ordered by, stands before them. `state` comes first and is
// written without its generation. What is not named is 0 when it comes back.
constexpr Field kLiveFields[] = {
    {FIELD(LiveRecord, state)},
    {FIELD(LiveRecord, site), .from = From::kPrevious},
    {FIELD(LiveRecord, size), .order = Order::kBySite},
    {FIELD(LiveRecord, address), .from = From::kBlockEnd, .unit = Unit::kSixteen},
    {FIELD(LiveRecord, weight), .from = From::kField, .other = offsetof(LiveRecord, size)},
    // Where every allocation is recorded, by a clock that ticks some hundred times a second.
    {FIELD(LiveRecord, time_ns), .order = Order::kBySite, .numbered = true},
    {FIELD(LiveRecord, thread)},
    {FIELD(LiveRecord, context)},
};
constexpr Field kSiteFields[] = {
    {FIELD(SiteRecord, state)},
    {FIELD(SiteRecord, frame_count), .from = From::kPrevious},
    {FIELD(SiteRecord, frame_start), .from = From::kStackEnd},
    {FIELD(SiteRecord, kind)},
    {FIELD(SiteRecord, flags)},
    {FIELD(SiteRecord, samples)},
    {FIELD(SiteRecord, count_fixed), .from = From::kBlocks, .other = offsetof(SiteRecord, samples)},
    {FIELD(SiteRecord, allocated_bytes), .unit = Unit::kSample},
    {FIELD(SiteRecord, allocated_variance)},
    {FIELD(SiteRecord, live_bytes), .unit = Unit::kBlock},
    {FIELD(SiteRecord, live_at_peak_bytes), .from = From::kField, .other = offsetof(SiteRecord, live_bytes),
     .unit = Unit::kBlock},
    {FIELD(SiteRecord, peak_epoch), .numbered = true},
    {FIELD(SiteRecord, own_peak_bytes), .from = From::kField, .other = offsetof(SiteRecord, allocated_bytes),
     .unit = Unit::kBlock},
    {FIELD(SiteRecord, first_thread)},
    {FIELD(SiteRecord, frees)},
    {FIELD(SiteRecord, frees_by_reaper)},
};
constexpr Field kSiteFieldsOfVersion3[] = {
    {FIELD(SiteRecord, state)},
    {FIELD(SiteRecord, frame_count)},
    {FIELD(SiteRecord, frame_start), .from = From::kStackEnd},
    {FIELD(SiteRecord, kind)},
    {FIELD(SiteRecord, flags)},
    {FIELD(SiteRecord, samples)},
    {FIELD(SiteRecord, count_fixed), .from = From::kBlocks, .other = offsetof(SiteRecord, samples)},
    {FIELD(SiteRecord, allocated_bytes)},
    {FIELD(SiteRecord, allocated_variance)},
    {FIELD(SiteRecord, live_bytes)},
    {FIELD(SiteRecord, live_at_peak_bytes), .from = From::kField, .other = offsetof(SiteRecord, live_bytes)},
    {FIELD(SiteRecord, peak_epoch)},
    {FIELD(SiteRecord, own_peak_bytes), .from = From::kField, .other = offsetof(SiteRecord, allocated_bytes)},
    {FIELD(SiteRecord, first_thread)},
    {FIELD(SiteRecord, frees)},
    {FIELD(SiteRecord, frees_by_reaper)},
};
constexpr Field kMappingFields[] = {
    {FIELD(MappingRecord, state)},
    {FIELD(MappingRecord, site)},
    {FIELD(MappingRecord, start), .from = From::kPrevious},
    {FIELD(MappingRecord, end), .from = From::kField, .other = offsetof(MappingRecord, start)},
    {FIELD(MappingRecord, time_ns), .from = From::kPrevious},
    {FIELD(MappingRecord, thread)},
    {FIELD(MappingRecord, flags)},
};
#undef FIELD

struct Layout {
  absl::Span<const Field> fields;
  uint64_t record_bytes = 0;
};

Layout LayoutOf(uint32_t version, uint32_t kind) {
  switch (kind) {
    case format::kRegionLive:
      return {kLiveFields, sizeof(LiveRecord)};
    case format::kRegionSites:
      if (version == 3) return {kSiteFieldsOfVersion3, sizeof(SiteRecord)};
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

// Of a block of `size` bytes with glibc's header. Where another allocator is behind the hooks the difference depends on
// the size alone, so that it costs little too.
uint64_t ChunkBytes(uint64_t size) { return std::max<uint64_t>(32, (size + 8 + 15) / 16 * 16); }

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
    case From::kStackEnd:
      return previous == nullptr ? 0
                                 : ValueAt(previous, offsetof(SiteRecord, frame_start), 8) +
                                       ValueAt(previous, offsetof(SiteRecord, frame_count), 4);
    case From::kBlockEnd:
      return previous == nullptr ? 0
                                 : ValueAt(previous, offsetof(LiveRecord, address), 8) +
                                       ChunkBytes(ValueAt(previous, offsetof(LiveRecord, size), 8));
  }
  return 0;
}

// At least 1.
uint64_t UnitOf(const char* record, Unit unit) {
  if (unit == Unit::kSixteen) return 16;
  uint64_t value = ValueAt(record, offsetof(SiteRecord, samples), sizeof(SiteRecord::samples));
  if (unit == Unit::kBlock && value > 0)
    value = ValueAt(record, offsetof(SiteRecord, allocated_bytes), sizeof(SiteRecord::allocated_bytes)) / value;
  return value > 0 && value <= INT64_MAX ? value : 1;
}

// Takes the difference's rest, in [0, unit), out of it and leaves the whole units, rounded down.
uint64_t TakeRest(uint64_t unit, uint64_t* difference) {
  const auto value = static_cast<int64_t>(*difference), step = static_cast<int64_t>(unit);
  const int64_t units = value / step - (value % step < 0 ? 1 : 0);
  const uint64_t rest = *difference - static_cast<uint64_t>(units) * unit;
  *difference = static_cast<uint64_t>(units);
  return rest;
}

// A small difference in either direction is a small number.
uint64_t Folded(uint64_t difference) {
  return (difference << 1) ^ static_cast<uint64_t>(static_cast<int64_t>(difference) >> 63);
}
uint64_t Unfolded(uint64_t folded) { return (folded >> 1) ^ (0 - (folded & 1)); }

uint32_t StateOf(const char* record) { return static_cast<uint32_t>(ValueAt(record, 0, 4)) & format::kStateMask; }

// `Record` is char* or const char*.
template <typename Record>
std::vector<Record> BySite(std::vector<Record> records) {
  auto site = [](const char* record) { return ValueAt(record, offsetof(LiveRecord, site), sizeof(LiveRecord::site)); };
  std::stable_sort(records.begin(), records.end(), [&](Record a, Record b) { return site(a) < site(b); });
  return records;
}

// What is written of the field, record by record.
std::vector<uint64_t> ToldValues(const Field& field, const std::vector<const char*>& records) {
  std::vector<uint64_t> values;
  values.reserve(records.size());
  const char* previous = nullptr;
  for (const char* record : records) {
    values.push_back(field.offset == 0 ? StateOf(record)
                                       : ValueOf(record, field) - ExpectedOf(record, previous, field));
    previous = record;
  }
  return values;
}

void EncodeField(const Field& field, const std::vector<const char*>& records, ColumnText* columns) {
  std::vector<uint64_t> values = ToldValues(field, records);
  if (field.numbered) {
    const std::vector<uint64_t> distinct = NumberValues(&values);
    PutSet(distinct, columns);
  }
  if (field.unit != Unit::kOne) {
    std::vector<uint64_t> rests;
    rests.reserve(values.size());
    for (size_t i = 0; i < values.size(); i++) rests.push_back(TakeRest(UnitOf(records[i], field.unit), &values[i]));
    PutColumn(rests, columns);
  }
  if (field.from != From::kZero) {
    for (uint64_t& value : values) value = Folded(value);
  }
  PutColumn(values, columns);
}

bool DecodeField(const Field& field, const std::vector<char*>& records, PackedReader* in) {
  std::vector<uint64_t> distinct, rests;
  if (field.numbered) distinct = Set(in);
  if (field.unit != Unit::kOne) rests = ReadColumn(records.size(), in);
  const char* previous = nullptr;
  for (size_t i = 0; i < records.size(); i++) {
    uint64_t value = in->Varint();
    if (field.from != From::kZero) value = Unfolded(value);
    if (field.unit != Unit::kOne) value = value * UnitOf(records[i], field.unit) + rests[i];
    if (field.numbered) {
      if (value >= distinct.size()) return false;
      value = distinct[value];
    }
    value += ExpectedOf(records[i], previous, field);
    memcpy(records[i] + field.offset, &value, field.bytes);
    previous = records[i];
  }
  return in->ok();
}

}  // namespace

uint64_t RecordBytesOf(uint32_t kind) { return LayoutOf(format::kPackedVersion, kind).record_bytes; }

bool EncodeRecords(uint32_t kind, const char* records, uint64_t count, ColumnText* columns) {
  const Layout layout = LayoutOf(format::kPackedVersion, kind);
  std::vector<const char*> used;
  std::vector<uint64_t> gaps;
  uint64_t next = 0;
  for (uint64_t i = 0; i < count; i++) {
    const char* record = records + i * layout.record_bytes;
    if (StateOf(record) == format::kFree) continue;
    gaps.push_back(i - next);
    next = i + 1;
    used.push_back(record);
  }
  if (used.empty()) return false;
  PutVarint(used.size(), &columns->text);
  PutColumn(gaps, columns);
  const std::vector<const char*> by_site = kind == format::kRegionLive ? BySite(used) : used;
  for (const Field& field : layout.fields) EncodeField(field, field.order == Order::kBySite ? by_site : used, columns);
  return true;
}

bool DecodeRecords(uint32_t version, uint32_t kind, const std::string& text, char* records, uint64_t count) {
  const Layout layout = LayoutOf(version, kind);
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
  std::vector<char*> by_site;
  for (const Field& field : layout.fields) {
    if (field.order == Order::kBySite && by_site.empty()) by_site = BySite(used);
    if (!DecodeField(field, field.order == Order::kBySite ? by_site : used, &in)) return false;
  }
  return in.left() == 0;
}

}  // namespace cadastre
