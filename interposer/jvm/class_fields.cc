#include "interposer/jvm/class_fields.h"

#include <string.h>

#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/lasting_memory.h"

namespace cadastre {
namespace {

constexpr size_t kMaxNameBytes = 32;
constexpr uint32_t kMostFields = 1000;

// Until 20, one entry: access flags, name, signature, initial value, offset (low, high), in u2.
constexpr size_t kSlots = 6, kNameSlot = 1, kSignatureSlot = 2, kLowSlot = 4, kHighSlot = 5;
constexpr uint32_t kOffsetShift = 2;  // below it: what the number is

// Since 21, one entry: name, signature, offset, access flags, flags, and up to three numbers that the flags announce.
// A number takes 5 bytes at most.
constexpr size_t kMaxEntryBytes = 8 * 5;

class FieldList {
 public:
  FieldList(const VmLayout& layout, uint64_t klass, const char* name) : layout_(layout), klass_(klass), name_(name) {}

  bool Find(ClassField* field) {
    if (layout_.vm_array_length < 0 || !LoadPointer(layout_.class_constants, &pool_)) return false;
    if (LoadPointer(layout_.class_field_stream, &list_)) return FindInStream(field);
    return LoadPointer(layout_.class_fields, &list_) && FindInArray(field);
  }

 private:
  bool LoadPointer(int32_t of_class, uint64_t* pointer) {
    return of_class >= 0 && memory_.Load(klass_ + static_cast<uint64_t>(of_class), pointer) && *pointer != 0;
  }

  // A Symbol* of the class's constant pool; 0 = cannot be read.
  uint64_t PoolSymbol(uint32_t index) {
    uint64_t symbol;
    return memory_.Load(pool_ + static_cast<uint64_t>(layout_.pool_bytes) + index * 8ull, &symbol) ? symbol : 0;
  }

  // The text of a Symbol; its length, of which as much as fits was copied. 0 = cannot be read.
  size_t ReadSymbol(uint64_t symbol, char* out, size_t capacity) {
    uint16_t length;
    if (!memory_.Load(symbol + static_cast<uint64_t>(layout_.symbol_length), &length)) return 0;
    const size_t taken = length < capacity ? length : capacity;
    return memory_.Read(symbol + static_cast<uint64_t>(layout_.symbol_body), out, taken) ? length : 0;
  }

  bool IsNamed(uint64_t symbol) {
    char text[kMaxNameBytes];
    const size_t length = ReadSymbol(symbol, text, sizeof(text));
    return length == strlen(name_) && memcmp(text, name_, length) == 0;
  }

  bool Take(uint64_t signature, uint32_t offset, ClassField* field) {
    // Beyond any object: then this is no list of fields.
    if (offset < 8 || offset > 4096) return false;
    field->offset = static_cast<int32_t>(offset);
    return ReadSymbol(signature, &field->type_first, 1) != 0;
  }

  bool FindInArray(ClassField* field) {
    uint16_t count, slots[kSlots];
    if (layout_.u2_array_data < 0 || layout_.class_field_count < 0 ||
        !memory_.Load(klass_ + static_cast<uint64_t>(layout_.class_field_count), &count)) {
      return false;
    }
    uint64_t at = list_ + static_cast<uint64_t>(layout_.u2_array_data);
    for (uint32_t i = 0; i < count && i < kMostFields && memory_.Load(at, &slots); i++, at += sizeof(slots)) {
      if (!IsNamed(PoolSymbol(slots[kNameSlot]))) continue;
      return Take(PoolSymbol(slots[kSignatureSlot]),
                  (static_cast<uint32_t>(slots[kHighSlot]) << 16 | slots[kLowSlot]) >> kOffsetShift, field);
    }
    return false;
  }

  // The list begins with the numbers of Java's fields and of those that HotSpot has added behind them.
  bool FindInStream(ClassField* field) {
    uint32_t bytes;
    if (layout_.u1_array_data < 0 || layout_.vm_symbols == nullptr || layout_.field_injected == 0 ||
        layout_.field_initialized == 0 || layout_.field_generic == 0 || layout_.field_contended == 0 ||
        !memory_.Load(list_ + static_cast<uint64_t>(layout_.vm_array_length), &bytes)) {
      return false;
    }
    const uint32_t announcing[] = {layout_.field_initialized, layout_.field_generic, layout_.field_contended};
    const uint32_t known = layout_.field_initialized | layout_.field_injected | layout_.field_generic |
                           layout_.field_stable | layout_.field_contended;
    uint8_t entry[kMaxEntryBytes];
    const uint64_t first = reinterpret_cast<uint64_t>(entry);
    uint64_t at = first;
    auto next = [&] { return ReadUnsigned5(&at, layout_.unsigned5_excluded); };
    uint64_t list_at = list_ + static_cast<uint64_t>(layout_.u1_array_data);
    const uint64_t end = list_at + bytes;
    // What was not copied is 0, which ends a number.
    auto read_on = [&] {
      memset(entry, 0, sizeof(entry));
      list_at += at - first;
      at = first;
      const uint64_t left = list_at < end ? end - list_at : 0;
      return left != 0 && memory_.Read(list_at, entry, left < sizeof(entry) ? left : sizeof(entry));
    };
    if (!read_on()) return false;
    uint64_t count = next();
    count += next();
    for (uint64_t i = 0; i < count && i < kMostFields && read_on(); i++) {
      const uint32_t name_index = next(), signature = next(), offset = next();
      next();  // access flags
      const uint32_t flags = next();
      if ((flags & ~known) != 0) return false;
      for (const uint32_t announces : announcing) {
        if ((flags & announces) != 0) next();
      }
      const bool injected = (flags & layout_.field_injected) != 0;
      if (!IsNamed(SymbolAt(injected, name_index))) continue;
      return Take(SymbolAt(injected, signature), offset, field);
    }
    return false;
  }

  uint64_t SymbolAt(bool injected, uint32_t index) {
    if (!injected) return PoolSymbol(index);
    uint64_t symbol;
    return memory_.Load(reinterpret_cast<uint64_t>(layout_.vm_symbols + index), &symbol) ? symbol : 0;
  }

  const VmLayout& layout_;
  const uint64_t klass_;
  const char* const name_;
  uint64_t pool_ = 0, list_ = 0;
  LastingMemory memory_;
};

}  // namespace

__attribute__((noinline)) bool FindClassField(const VmLayout& layout, uint64_t klass, const char* name,
                                              ClassField* field) {
  return FieldList(layout, klass, name).Find(field);
}

}  // namespace cadastre
