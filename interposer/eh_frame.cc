#include "interposer/eh_frame.h"

namespace cadastre {
namespace {

enum PointerEncoding : uint8_t {
  kPointerAbsolute = 0x00,
  kPointerUleb = 0x01,
  kPointerU16 = 0x02,
  kPointerU32 = 0x03,
  kPointerU64 = 0x04,
  kPointerSleb = 0x09,
  kPointerS16 = 0x0a,
  kPointerS32 = 0x0b,
  kPointerS64 = 0x0c,
  kPointerFormatMask = 0x0f,
  kPointerPcRelative = 0x10,
  kPointerDataRelative = 0x30,
  kPointerRelativeMask = 0x70,
  kPointerIndirect = 0x80,
  kPointerOmit = 0xff,
};

struct Bounds {
  const uint8_t *low, *high;
  bool Contains(uint64_t address) const {
    return address >= reinterpret_cast<uint64_t>(low) && address < reinterpret_cast<uint64_t>(high);
  }
};

// One CIE or FDE: [length][id or CIE pointer][body]. False at the terminator or on damage.
struct Record {
  const uint8_t* id_at;
  uint64_t id;
  TableCursor body;
  const uint8_t* next;
};

bool ReadRecord(const uint8_t* at, const Bounds& bounds, Record* record) {
  TableCursor cursor = {at, bounds.high};
  uint64_t length = cursor.U32();
  const bool is_64_bit = length == 0xffffffff;
  if (is_64_bit) length = cursor.U64();
  if (!cursor.ok || length == 0 || length > static_cast<uint64_t>(bounds.high - cursor.at)) return false;
  record->next = cursor.at + length;
  record->id_at = cursor.at;
  cursor.end = record->next;
  record->id = is_64_bit ? cursor.U64() : cursor.U32();
  record->body = cursor;
  return cursor.ok;
}

bool ReadCie(const uint8_t* at, const Bounds& bounds, FrameTable* table) {
  Record record;
  if (!ReadRecord(at, bounds, &record) || record.id != 0) return false;
  TableCursor cursor = record.body;
  uint8_t version = cursor.U8();
  if (version != 1 && version != 3 && version != 4) return false;
  const char* augmentation = reinterpret_cast<const char*>(cursor.at);
  while (cursor.U8() != 0) {
  }
  if (!cursor.ok) return false;
  if (augmentation[0] == 'e' && augmentation[1] == 'h') return false;  // gcc 2
  if (version == 4) cursor.Skip(2);                                    // address and segment selector size
  table->code_alignment = cursor.Uleb();
  table->data_alignment = cursor.Sleb();
  table->return_register = version == 1 ? cursor.U8() : cursor.Uleb();
  table->pointer_encoding = kPointerAbsolute;
  table->signal_frame = false;
  if (augmentation[0] == 'z') {
    uint64_t bytes = cursor.Uleb();
    const uint8_t* after = cursor.at + bytes;
    if (!cursor.ok || bytes > static_cast<uint64_t>(cursor.end - cursor.at)) return false;
    for (const char* letter = augmentation + 1; *letter != 0; letter++) {
      if (*letter == 'R') {
        table->pointer_encoding = cursor.U8();
      } else if (*letter == 'P') {
        uint8_t encoding = cursor.U8();
        cursor.Pointer(encoding & static_cast<uint8_t>(~kPointerIndirect), 0);
      } else if (*letter == 'L') {
        cursor.U8();
      } else if (*letter == 'S') {
        table->signal_frame = true;
      } else {
        break;  // unknown letters: their data ends where `bytes` says
      }
    }
    cursor.at = after;
  } else if (augmentation[0] != 0) {
    return false;
  }
  table->initial_begin = cursor.at;
  table->initial_end = record.next;
  return cursor.ok;
}

bool ReadFde(const uint8_t* at, const Bounds& bounds, FrameTable* table) {
  Record record;
  if (!ReadRecord(at, bounds, &record) || record.id == 0) return false;
  const uint8_t* cie = record.id_at - record.id;
  if (record.id > static_cast<uint64_t>(record.id_at - bounds.low) || !ReadCie(cie, bounds, table)) return false;
  TableCursor cursor = record.body;
  table->start = cursor.Pointer(table->pointer_encoding, 0);
  table->end = table->start + cursor.Pointer(table->pointer_encoding & kPointerFormatMask, 0);
  const char* augmentation = reinterpret_cast<const char*>(cie) + 9;
  if (bounds.low + 4 <= cie && *reinterpret_cast<const uint32_t*>(cie) == 0xffffffff) augmentation += 12;
  if (augmentation[0] == 'z') {
    uint64_t bytes = cursor.Uleb();
    cursor.Skip(bytes);
  }
  table->program_begin = cursor.at;
  table->program_end = record.next;
  return cursor.ok;
}

}  // namespace

uint64_t TableCursor::Uleb() {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 70; shift += 7) {
    uint8_t byte = U8();
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  ok = false;
  return 0;
}

int64_t TableCursor::Sleb() {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 70; shift += 7) {
    uint8_t byte = U8();
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte & 0x80) continue;
    if ((byte & 0x40) && shift + 7 < 64) value |= ~0ull << (shift + 7);
    return static_cast<int64_t>(value);
  }
  ok = false;
  return 0;
}

void TableCursor::Skip(uint64_t bytes) {
  if (!ok || bytes > static_cast<uint64_t>(end - at)) {
    ok = false;
    return;
  }
  at += bytes;
}

uint64_t TableCursor::Pointer(uint8_t encoding, uint64_t data_base) {
  if (encoding == kPointerOmit) return 0;
  uint64_t base = 0;
  switch (encoding & kPointerRelativeMask) {
    case 0:
      break;
    case kPointerPcRelative:
      base = reinterpret_cast<uint64_t>(at);
      break;
    case kPointerDataRelative:
      base = data_base;
      break;
    default:
      ok = false;
      return 0;
  }
  if (encoding & kPointerIndirect) ok = false;
  uint64_t value = 0;
  switch (encoding & kPointerFormatMask) {
    case kPointerAbsolute:
    case kPointerU64:
    case kPointerS64:
      value = U64();
      break;
    case kPointerUleb:
      value = Uleb();
      break;
    case kPointerU16:
      value = U16();
      break;
    case kPointerU32:
      value = U32();
      break;
    case kPointerSleb:
      value = static_cast<uint64_t>(Sleb());
      break;
    case kPointerS16:
      value = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int16_t>(U16())));
      break;
    case kPointerS32:
      value = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(U32())));
      break;
    default:
      ok = false;
      return 0;
  }
  return ok ? base + value : 0;
}

bool FindFrameTable(const LibraryEntry& library, uint64_t pc, FrameTable* table) {
  if (library.eh_frame_hdr == nullptr) return false;
  const Bounds bounds = {reinterpret_cast<const uint8_t*>(library.tables_start),
                         reinterpret_cast<const uint8_t*>(library.tables_end)};
  const auto header = reinterpret_cast<uint64_t>(library.eh_frame_hdr);
  TableCursor cursor = {library.eh_frame_hdr, bounds.high};
  uint8_t version = cursor.U8(), frame_encoding = cursor.U8(), count_encoding = cursor.U8(),
          table_encoding = cursor.U8();
  uint64_t eh_frame = cursor.Pointer(frame_encoding, header);
  if (!cursor.ok || version != 1 || !bounds.Contains(eh_frame)) return false;
  const bool has_table = count_encoding != kPointerOmit && table_encoding == (kPointerDataRelative | kPointerS32);
  if (!has_table) {  // slow, but what is found is cached; linkers in use all write the table
    Record record;
    for (auto* at = reinterpret_cast<const uint8_t*>(eh_frame); ReadRecord(at, bounds, &record); at = record.next) {
      if (record.id != 0 && ReadFde(at, bounds, table) && pc >= table->start && pc < table->end) return true;
    }
    return false;
  }
  uint64_t count = cursor.Pointer(count_encoding, header);
  struct Row {
    int32_t start, fde;  // relative to the header
  };
  if (!cursor.ok || count == 0 || count > static_cast<uint64_t>(bounds.high - cursor.at) / sizeof(Row)) return false;
  auto row_at = [rows = cursor.at](uint64_t index) {  // copied: a damaged header may not be aligned
    Row row;
    __builtin_memcpy(&row, rows + index * sizeof(Row), sizeof(Row));
    return row;
  };
  uint64_t low = 0, high = count;  // the last row that starts at or before pc lies in [low - 1, high - 1]
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (header + static_cast<uint64_t>(static_cast<int64_t>(row_at(middle).start)) <= pc) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return false;
  uint64_t fde = header + static_cast<uint64_t>(static_cast<int64_t>(row_at(low - 1).fde));
  if (!bounds.Contains(fde) || !ReadFde(reinterpret_cast<const uint8_t*>(fde), bounds, table)) return false;
  return pc >= table->start && pc < table->end;
}

}  // namespace cadastre
