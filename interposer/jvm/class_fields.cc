#include "interposer/jvm/class_fields.h"

#include <string.h>

#include "interposer/jvm/checked_read.h"
#include "interposer/jvm/code_cache.h"

namespace cadastre {
namespace {

constexpr size_t kListBytes = 1536;  // java.lang.Thread has some 30 fields of 12 bytes
constexpr size_t kMaxNameBytes = 32;

// Until 20, one entry: access flags, name, signature, initial value, offset (low, high), in u2.
constexpr size_t kSlots = 6, kNameSlot = 1, kSignatureSlot = 2, kLowSlot = 4, kHighSlot = 5;
constexpr uint32_t kOffsetShift = 2;  // below it: what the number is

// Since 21: flags of one field that say which optional numbers follow.
constexpr uint32_t kHasInitialValue = 1u << 0, kIsGeneric = 1u << 2, kIsContended = 1u << 4;

// The text of the pool's symbol; its length, or 0.
size_t ReadSymbol(const VmLayout& layout, uint64_t pool, uint32_t index, char* out, size_t capacity) {
  uint64_t symbol;
  uint16_t length;
  if (!CheckedLoad(pool + static_cast<uint64_t>(layout.pool_bytes) + index * 8ull, &symbol) ||
      !CheckedLoad(symbol + static_cast<uint64_t>(layout.symbol_length), &length)) {
    return 0;
  }
  const size_t taken = length < capacity ? length : capacity;
  return CheckedRead({{symbol + static_cast<uint64_t>(layout.symbol_body), out, taken}}) ? length : 0;
}

// Reads the whole list of fields. Array<T>: its length, a u4, then data.
template <size_t kCapacity>
size_t ReadList(uint64_t list, int32_t data_offset, size_t element_bytes, uint8_t (&out)[kCapacity]) {
  uint32_t length;
  if (list == 0 || !CheckedLoad(list, &length)) return 0;
  const size_t bytes = length * element_bytes < kCapacity ? length * element_bytes : kCapacity;
  return CheckedRead({{list + static_cast<uint64_t>(data_offset), out, bytes}}) ? bytes : 0;
}

class FieldList {
 public:
  FieldList(const VmLayout& layout, uint64_t klass) : layout_(layout), klass_(klass) {}

  __attribute__((noinline)) bool Find(const char* name, ClassField* field) {
    if (layout_.class_constants < 0 || !CheckedLoad(klass_ + static_cast<uint64_t>(layout_.class_constants), &pool_)) {
      return false;
    }
    return layout_.class_field_stream >= 0 ? FindInStream(name, field) : FindInArray(name, field);
  }

 private:
  bool IsNamed(uint32_t index, const char* name) {
    char text[kMaxNameBytes];
    const size_t length = ReadSymbol(layout_, pool_, index, text, sizeof(text));
    return length == strlen(name) && memcmp(text, name, length) == 0;
  }

  bool Take(uint32_t signature, uint32_t offset, ClassField* field) {
    // Beyond any object: then this is no list of fields.
    if (offset < 8 || offset > 4096) return false;
    field->offset = static_cast<int32_t>(offset);
    return ReadSymbol(layout_, pool_, signature, &field->type_first, 1) != 0;
  }

  bool FindInArray(const char* name, ClassField* field) {
    uint64_t list;
    uint16_t count;
    uint8_t bytes[kListBytes];
    if (layout_.class_fields < 0 || layout_.class_field_count < 0 || layout_.array_u2_data < 0 ||
        !CheckedLoad(klass_ + static_cast<uint64_t>(layout_.class_fields), &list) ||
        !CheckedLoad(klass_ + static_cast<uint64_t>(layout_.class_field_count), &count)) {
      return false;
    }
    const size_t read = ReadList(list, layout_.array_u2_data, sizeof(uint16_t), bytes);
    for (size_t i = 0; i < count && (i + 1) * kSlots * sizeof(uint16_t) <= read; i++) {
      uint16_t slots[kSlots];
      memcpy(slots, bytes + i * sizeof(slots), sizeof(slots));
      if (!IsNamed(slots[kNameSlot], name)) continue;
      return Take(slots[kSignatureSlot],
                  (static_cast<uint32_t>(slots[kHighSlot]) << 16 | slots[kLowSlot]) >> kOffsetShift, field);
    }
    return false;
  }

  bool FindInStream(const char* name, ClassField* field) {
    uint64_t list;
    uint8_t bytes[kListBytes];
    if (layout_.array_u1_data < 0 || !CheckedLoad(klass_ + static_cast<uint64_t>(layout_.class_field_stream), &list)) {
      return false;
    }
    const size_t read = ReadList(list, layout_.array_u1_data, 1, bytes);
    uint64_t at = reinterpret_cast<uint64_t>(bytes);
    const uint64_t end = at + read, last_start = at + sizeof(bytes) - kMaxEntryBytes;
    if (read == 0) return false;
    auto next = [&] { return ReadUnsigned5(&at, layout_.unsigned5_excluded); };
    uint32_t count = next();
    next();  // fields that the JVM has added, behind the others
    for (; count > 0 && at < end && at <= last_start; count--) {
      const uint32_t name_index = next(), signature = next(), offset = next();
      next();  // access flags
      const uint32_t flags = next();
      if (IsNamed(name_index, name)) return Take(signature, offset, field);
      if ((flags & kHasInitialValue) != 0) next();
      if ((flags & kIsGeneric) != 0) next();
      if ((flags & kIsContended) != 0) next();
    }
    return false;
  }

  static constexpr size_t kMaxEntryBytes = 8 * 5;  // of one field: eight numbers

  const VmLayout& layout_;
  uint64_t klass_, pool_ = 0;
};

}  // namespace

bool FindClassField(const VmLayout& layout, uint64_t klass, const char* name, ClassField* field) {
  return FieldList(layout, klass).Find(name, field);
}

}  // namespace cadastre
