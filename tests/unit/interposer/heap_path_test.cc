// Objects of a heap that a collector moves while they are read: heap_path.h on a heap made by hand. What is copied
// counts only if nothing happened meanwhile, and memory that is not there is an error, not a fault.
#include "interposer/jvm/heap_path.h"

#include <string.h>
#include <sys/mman.h>

#include <cstddef>

#include "tests/support/catch.h"
#include "tests/unit/interposer/made_by_hand.h"

using namespace cadastre;

namespace {

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
class FakeVm {
 public:
  FakeVm() {
    memset(&layout, 0, sizeof(layout));
    layout.collected_heap = &heap_address_;
    layout.heap_in_pause = Offset(offsetof(Heap, in_pause));
    layout.heap_collections = Offset(offsetof(Heap, collections));
    form.reference_bytes = 4;
    form.narrow_base = &base_;
    form.narrow_shift = &shift_;
    form.mark = Offset(offsetof(Object, mark));
    form.class_word = Offset(offsetof(Object, narrow_class));
    form.class_bytes = 4;
    form.class_base = &class_base_;
    form.class_shift = &shift_;
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
  HeapForm form = {};
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
  HeapPath path(vm.layout, vm.form);
  uint64_t object, next, class_address, word = 0;
  REQUIRE(path.Start(Address(&vm.slot), &object));
  CHECK(object == Address(vm.objects[0]));
  REQUIRE(path.Follow(&object, FakeVm::kField, &next));
  CHECK(next == Address(vm.objects[1]));
  REQUIRE(path.Copy(&next, 0, &word, sizeof(word), &class_address));
  CHECK(word == 1);
  CHECK(class_address == 0x10000 + (7 << 3));
  REQUIRE(path.Follow(&next, FakeVm::kField, &object));
  CHECK(object == 0);
}

TEST_CASE("an object that has been copied is read where its copy is") {
  FakeVm vm;
  vm.objects[2]->field = vm.Narrow(vm.objects[3]);
  vm.objects[0]->mark = Address(vm.objects[2]) | 3;
  HeapPath path(vm.layout, vm.form);
  uint64_t object, next;
  REQUIRE(path.Start(Address(&vm.slot), &object));
  REQUIRE(path.Follow(&object, FakeVm::kField, &next));
  CHECK(object == Address(vm.objects[2]));
  CHECK(next == Address(vm.objects[3]));
}

TEST_CASE("a copy does not count if the heap was disturbed") {
  FakeVm vm;
  HeapPath path(vm.layout, vm.form);
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

TEST_CASE("a path does not begin at a variable that is not there, nor in a pause") {
  FakeVm vm;
  HeapPath path(vm.layout, vm.form);
  uint64_t object;
  vm.objects[0]->field = 1;
  SECTION("there are no pages") {
    vm.TakeAway();
    CHECK_FALSE(path.Start(Address(vm.objects[0]), &object));
  }
  SECTION("a collector is at work") {
    vm.heap.in_pause = 1;
    CHECK_FALSE(path.Start(Address(&vm.slot), &object));
  }
}

TEST_CASE("a coloured reference leads on only while its colour is good") {
  FakeVm vm;
  uint64_t bad = 1 << 12, shift = 13;
  vm.form.reference_bytes = 8;
  vm.form.bad_colours = &bad;
  vm.form.colour_bits = &shift;
  vm.slot = Address(vm.objects[0]) << shift;
  struct {
    Object object;
    uint64_t reference;
  } holder;
  HeapPath path(vm.layout, vm.form);
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
    HeapPath another(vm.layout, vm.form);
    REQUIRE(another.Start(Address(&vm.slot), &object));
    uint64_t word;
    REQUIRE(another.CopyInside(object, &word, sizeof(word)));
    bad = 1 << 13;
    CHECK_FALSE(another.CopyInside(object, &word, sizeof(word)));
  }
}

TEST_CASE("a reference with one generation's colours is an address as it is, and null has no colour") {
  FakeVm vm;
  uint64_t bad = 1ull << 42;
  vm.form.reference_bytes = 8;
  vm.form.bad_colours = &bad;
  uint64_t object = 1;
  CHECK(DecodeField(vm.form, bad, 0x5000, &object));
  CHECK(object == 0x5000);
  CHECK_FALSE(DecodeField(vm.form, bad, 0x5000 | bad, &object));
  CHECK(DecodeField(vm.form, bad, 0, &object));
  CHECK(object == 0);
}

TEST_CASE("the class is found in the mark, in a compressed word or in a whole one") {
  FakeVm vm;
  CHECK(ClassOf(vm.form, {1, 7}) == 0x10000 + (7 << 3));
  vm.form.class_bytes = 8;
  CHECK(ClassOf(vm.form, {1, 0x7000}) == 0x7000);
  vm.form.class_bytes = 4;
  vm.form.class_word = kNoField;
  vm.form.class_mark_bits = 42;
  CHECK(ClassOf(vm.form, {5ull << 42 | 1, 0}) == 0x10000 + (5 << 3));
  CHECK(ClassOf(vm.form, {1, 0}) == 0);
}

TEST_CASE("a path has an end") {
  FakeVm vm;
  for (Object* object : vm.objects) object->field = vm.Narrow(object);
  HeapPath path(vm.layout, vm.form);
  uint64_t object, next;
  REQUIRE(path.Start(Address(&vm.slot), &object));
  int followed = 0;
  while (followed < 100 && path.Follow(&object, FakeVm::kField, &next)) followed++;
  CHECK(followed == 10);
}
