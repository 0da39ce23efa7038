// Objects of a heap that a collector moves while they are read: java_heap.h on a heap made by hand. What is copied
// counts only if nothing happened meanwhile, and memory that is not there is an error, not a fault.
#include "interposer/jvm/java_heap.h"

#include <string.h>
#include <sys/mman.h>

#include <cstddef>
#include <vector>

#include "tests/support/catch.h"

using namespace cadastre;

namespace {

template <typename Type>
int32_t Offset(Type offset) {
  return static_cast<int32_t>(offset);
}
uint64_t Address(const void* object) { return reinterpret_cast<uint64_t>(object); }

// As much of HotSpot's structures as is read.
struct Heap {
  uint8_t in_pause;
  uint32_t collections;
};
struct Object {
  uint64_t mark = 1;
  uint32_t narrow_class = 7;
  uint32_t field = 0;
};
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
};

class FakeVm {
 public:
  FakeVm() {
    memset(&layout, 0, sizeof(layout));
    layout.collected_heap = &heap_address_;
    layout.heap_in_pause = Offset(offsetof(Heap, in_pause));
    layout.heap_collections = Offset(offsetof(Heap, collections));
    layout.oop_mark = Offset(offsetof(Object, mark));
    layout.oop_narrow_class = Offset(offsetof(Object, narrow_class));
    layout.narrow_oop_base = &base_;
    layout.narrow_oop_shift = &shift_;
    layout.narrow_class_base = &class_base_;
    layout.narrow_class_shift = &shift_;
    pages_ = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    base_ = Address(pages_) - 64;
    for (uint32_t i = 0; i < 4; i++) objects[i] = new (pages_ + i * 1024) Object;
    objects[0]->field = Narrow(objects[1]);
    slot = Address(objects[0]);
  }
  ~FakeVm() { munmap(pages_, kBytes); }

  uint32_t Narrow(const Object* object) const { return static_cast<uint32_t>((Address(object) - base_) >> shift_); }
  void TakeAway() { mprotect(pages_, kBytes, PROT_NONE); }

  static constexpr int32_t kField = offsetof(Object, field);
  VmLayout layout;
  HeapLayout heap_layout = {HeapLayout::kNarrow, HeapLayout::kNarrowClass};
  Heap heap = {0, 3};
  Object* objects[4];
  uint64_t slot;

 private:
  static constexpr size_t kBytes = 4096;
  char* pages_;
  uint64_t heap_address_ = Address(&heap), base_ = 0, shift_ = 3, class_base_ = 0x10000;
};

}  // namespace

TEST_CASE("a path leads along compressed references and says which class an object has") {
  FakeVm vm;
  HeapPath path(vm.layout, vm.heap_layout);
  uint64_t object, next, class_address, word = 0;
  REQUIRE(path.Start(Address(&vm.slot), &object));
  CHECK(object == Address(vm.objects[0]));
  REQUIRE(path.Follow(&object, FakeVm::kField, &next));
  CHECK(next == Address(vm.objects[1]));
  REQUIRE(path.Copy(&next, &word, sizeof(word), &class_address));
  CHECK(word == 1);
  CHECK(class_address == 0x10000 + (7 << 3));
  REQUIRE(path.Follow(&next, FakeVm::kField, &object));
  CHECK(object == 0);
}

TEST_CASE("an object that has been copied is read where its copy is") {
  FakeVm vm;
  vm.objects[2]->field = vm.Narrow(vm.objects[3]);
  vm.objects[0]->mark = Address(vm.objects[2]) | 3;
  HeapPath path(vm.layout, vm.heap_layout);
  uint64_t object, next;
  REQUIRE(path.Start(Address(&vm.slot), &object));
  REQUIRE(path.Follow(&object, FakeVm::kField, &next));
  CHECK(object == Address(vm.objects[2]));
  CHECK(next == Address(vm.objects[3]));
}

TEST_CASE("a copy does not count if the heap was disturbed") {
  FakeVm vm;
  HeapPath path(vm.layout, vm.heap_layout);
  uint64_t object, next, word;
  REQUIRE(path.Start(Address(&vm.slot), &object));
  REQUIRE(path.Follow(&object, FakeVm::kField, &next));
  REQUIRE(path.CopyInside(next, &word, sizeof(word)));
  SECTION("by a pause that lasts") { vm.heap.in_pause = 1; }
  SECTION("by a pause that came and went") { vm.heap.collections++; }
  SECTION("by a change of a reference on the way") { vm.objects[0]->field = vm.Narrow(vm.objects[3]); }
  SECTION("by a change of where the way begins") { vm.slot = Address(vm.objects[3]); }
  SECTION("by its memory being given back") { vm.TakeAway(); }
  CHECK_FALSE(path.CopyInside(next, &word, sizeof(word)));
}

TEST_CASE("a coloured reference leads on only while its colour is good") {
  FakeVm vm;
  struct {
    const uint64_t *bad, *shift;
  } globals;
  uint64_t bad = 1 << 12, shift = 13;
  globals = {&bad, &shift};
  const uint64_t globals_address = Address(&globals);
  vm.layout.coloured = &globals_address;
  vm.layout.coloured_bad = 0;
  vm.layout.coloured_shift = 8;
  vm.heap_layout.references = HeapLayout::kColoured;
  vm.slot = Address(vm.objects[0]) << shift;
  struct {
    Object object;
    uint64_t reference;
  } holder;
  HeapPath path(vm.layout, vm.heap_layout);
  uint64_t object = 0, next;
  REQUIRE(path.Start(Address(&vm.slot), &object));
  CHECK(object == Address(vm.objects[0]));
  object = Address(&holder);
  holder.reference = 0xff0;  // null, of whatever colour
  REQUIRE(path.Follow(&object, offsetof(decltype(holder), reference), &next));
  CHECK(next == 0);
  holder.reference = Address(vm.objects[1]) << shift | bad;
  CHECK_FALSE(path.Follow(&object, offsetof(decltype(holder), reference), &next));
  SECTION("and what was read before the colours changed does not count") {
    HeapPath another(vm.layout, vm.heap_layout);
    REQUIRE(another.Start(Address(&vm.slot), &object));
    uint64_t word;
    REQUIRE(another.CopyInside(object, &word, sizeof(word)));
    bad = 1 << 13;
    CHECK_FALSE(another.CopyInside(object, &word, sizeof(word)));
  }
}

TEST_CASE("fields are found by name, also those that HotSpot adds") {
  VmLayout layout;
  memset(&layout, 0, sizeof(layout));
  layout.class_constants = Offset(offsetof(Class, constants));
  layout.class_fields = Offset(offsetof(Class, fields));
  layout.array_header_length = 0;
  layout.byte_array_data = 4;
  layout.pool_bytes = Offset(offsetof(Pool, symbols));
  layout.symbol_length = Offset(offsetof(Symbol, length));
  layout.symbol_body = Offset(offsetof(Symbol, body));
  layout.unsigned5_excluded = 1;
  layout.field_initialized = 1, layout.field_injected = 2, layout.field_generic = 4, layout.field_stable = 8;
  layout.field_contended = 16;
  const Symbol first = {5, "first"}, second = {6, "second"}, added = {2, "pc"};
  const Pool pool = {{0, 0}, {nullptr, &first, &second}};
  const uint64_t vm_symbols[] = {0, 0, 0, Address(&added)};
  layout.vm_symbols = vm_symbols;
  // Numbers below 191 are one byte, one higher than the value.
  auto stream = [](const std::vector<uint32_t>& numbers) {
    std::vector<uint8_t> bytes(4);
    const auto length = static_cast<uint32_t>(numbers.size());
    memcpy(bytes.data(), &length, sizeof(length));
    for (uint32_t number : numbers) bytes.push_back(static_cast<uint8_t>(number + 1));
    return bytes;
  };
  // Two of Java's and one added; name, signature, offset, access, flags, and what these announce.
  std::vector<uint8_t> bytes = stream({2, 1, 1, 0, 12, 2, 1 | 4, 99, 98, 2, 0, 16, 2, 8, 3, 0, 24, 0, 2});
  Class type = {&pool, bytes.data()};
  CHECK(FieldOffset(layout, Address(&type), "first") == 12);
  CHECK(FieldOffset(layout, Address(&type), "second") == 16);
  CHECK(FieldOffset(layout, Address(&type), "pc") == 24);
  CHECK(FieldOffset(layout, Address(&type), "third") == kNoField);
  // What an unknown flag announces is not known either.
  bytes = stream({2, 0, 1, 0, 12, 2, 32, 99, 2, 0, 16, 2, 0});
  type.fields = bytes.data();
  CHECK(FieldOffset(layout, Address(&type), "second") == kNoField);
}
