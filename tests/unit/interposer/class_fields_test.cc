// A class's list of fields in both of HotSpot's forms: class_fields.h on classes made by hand.
#include "interposer/jvm/class_fields.h"

#include <string.h>

#include <cstddef>
#include <vector>

#include "tests/support/catch.h"
#include "tests/unit/interposer/made_by_hand.h"

using namespace cadastre;

namespace {

// As much of HotSpot's structures as is read.
struct Symbol {
  uint16_t length;
  char body[30];
};
struct Pool {
  uint64_t header[2];
  const Symbol* symbols[8];
};
struct Class {
  const Pool* constants;
  const void* fields;
  uint16_t field_count;
};

const Symbol kFirst = {5, "first"}, kSecond = {6, "second"}, kString = {18, "Ljava/lang/String;"}, kArray = {2, "[C"};
const Symbol kAdded = {2, "pc"}, kLong = {1, "J"};
const Pool kPool = {{0, 0}, {nullptr, &kFirst, &kSecond, &kString, &kArray}};

VmLayout CommonLayout() {
  VmLayout layout;
  memset(&layout, 0, sizeof(layout));
  layout.class_constants = Offset(offsetof(Class, constants));
  layout.class_fields = layout.class_field_count = layout.class_field_stream = kNoField;
  layout.vm_array_length = 0;
  layout.pool_bytes = Offset(offsetof(Pool, symbols));
  layout.symbol_length = Offset(offsetof(Symbol, length));
  layout.symbol_body = Offset(offsetof(Symbol, body));
  return layout;
}

// An Array<T>: its length, then data.
template <typename Element>
std::vector<uint8_t> ArrayOf(const std::vector<Element>& elements) {
  std::vector<uint8_t> bytes(4 + elements.size() * sizeof(Element));
  const auto length = static_cast<uint32_t>(elements.size());
  memcpy(bytes.data(), &length, sizeof(length));
  memcpy(bytes.data() + 4, elements.data(), elements.size() * sizeof(Element));
  return bytes;
}

// Numbers below 191 are one byte, one higher than the value.
std::vector<uint8_t> Stream(const std::vector<uint32_t>& numbers) {
  std::vector<uint8_t> bytes;
  for (uint32_t number : numbers) bytes.push_back(static_cast<uint8_t>(number + 1));
  return ArrayOf(bytes);
}

VmLayout StreamLayout(const uint64_t* vm_symbols) {
  VmLayout layout = CommonLayout();
  layout.class_field_stream = Offset(offsetof(Class, fields));
  layout.u1_array_data = 4;
  layout.unsigned5_excluded = 1;
  layout.field_initialized = 1, layout.field_injected = 2, layout.field_generic = 4, layout.field_stable = 8;
  layout.field_contended = 16;
  layout.vm_symbols = vm_symbols;
  return layout;
}

void CheckField(const VmLayout& layout, const Class& type, const char* name, int32_t offset, char type_first) {
  INFO(name);
  ClassField field;
  REQUIRE(FindClassField(layout, Address(&type), name, &field));
  CHECK(field.offset == offset);
  CHECK(field.type_first == type_first);
}

}  // namespace

TEST_CASE("fields in a stream are found by name, also those that HotSpot adds") {
  const uint64_t vm_symbols[] = {0, 0, 0, Address(&kAdded), Address(&kLong)};
  const VmLayout layout = StreamLayout(vm_symbols);
  // Two of Java's and one added; name, signature, offset, access, flags, and what these announce.
  const auto bytes = Stream({2, 1, 1, 3, 12, 2, 1 | 4, 99, 98, 2, 4, 16, 2, 8, 3, 4, 24, 0, 2});
  const Class type = {&kPool, bytes.data(), 0};
  ClassField field;
  CheckField(layout, type, "first", 12, 'L');
  CheckField(layout, type, "second", 16, '[');
  CheckField(layout, type, "pc", 24, 'J');
  CHECK_FALSE(FindClassField(layout, Address(&type), "third", &field));
}

TEST_CASE("what an unknown flag of a field announces is not known either") {
  const uint64_t vm_symbols[] = {0};
  const VmLayout layout = StreamLayout(vm_symbols);
  const auto bytes = Stream({2, 0, 1, 3, 12, 2, 32, 99, 2, 4, 16, 2, 0});
  const Class type = {&kPool, bytes.data(), 0};
  ClassField field;
  CHECK_FALSE(FindClassField(layout, Address(&type), "second", &field));
}

TEST_CASE("a stream is not read beyond its end, whatever its count says") {
  const uint64_t vm_symbols[] = {0};
  const VmLayout layout = StreamLayout(vm_symbols);
  auto bytes = Stream({2, 0, 1, 3, 12, 2, 0, 2, 4, 16, 2, 0});
  const uint32_t half = 7;
  memcpy(bytes.data(), &half, sizeof(half));
  const Class type = {&kPool, bytes.data(), 0};
  ClassField field;
  CHECK(FindClassField(layout, Address(&type), "first", &field));
  CHECK_FALSE(FindClassField(layout, Address(&type), "second", &field));
}

TEST_CASE("fields in an array are found by name") {
  VmLayout layout = CommonLayout();
  layout.class_fields = Offset(offsetof(Class, fields));
  layout.class_field_count = Offset(offsetof(Class, field_count));
  layout.u2_array_data = 4;
  // Access flags, name, signature, initial value, offset << 2 and its kind.
  auto bytes = ArrayOf<uint16_t>({2, 1, 3, 0, 12 << 2 | 1, 0, 2, 2, 4, 0, 16 << 2 | 1, 0});
  Class type = {&kPool, bytes.data(), 2};
  ClassField field;
  CheckField(layout, type, "first", 12, 'L');
  CheckField(layout, type, "second", 16, '[');
  CHECK_FALSE(FindClassField(layout, Address(&type), "third", &field));
  SECTION("of as many as are Java's") {
    type.field_count = 1;
    CHECK_FALSE(FindClassField(layout, Address(&type), "second", &field));
  }
  SECTION("and not at a place where no field can be") {
    bytes = ArrayOf<uint16_t>({2, 1, 3, 0, 0, 1, 2, 2, 4, 0, 4 << 2 | 1, 0});
    type.fields = bytes.data();
    CHECK_FALSE(FindClassField(layout, Address(&type), "first", &field));
    CHECK_FALSE(FindClassField(layout, Address(&type), "second", &field));
  }
}
