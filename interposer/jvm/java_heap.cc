#include "interposer/jvm/java_heap.h"

#include <errno.h>
#include <sys/uio.h>

#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/method_names.h"
#include "interposer/jvm/vm_flags.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {

constexpr uint32_t kMostFields = 1000;

// OpenJDK src/hotspot/share/oops/markWord.hpp: these two bits say that the rest is the address of the object's copy.
constexpr uint64_t kForwardedMask = 3;
// gc/z/zAddress.hpp: the colours are below this bit, in null too.
constexpr uint32_t kColourBits = 16;

bool copying_refused;  // by a kernel or a container that does not have the system call

uint32_t LoadInt(const uint64_t* variable) { return LoadField<uint32_t>(reinterpret_cast<uint64_t>(variable), 0); }

}  // namespace

// OpenJDK src/hotspot/share/oops/fieldInfo.hpp: numbers of Java's and of HotSpot's fields, then for each name,
// signature, offset, access flags, flags, and up to three numbers that the flags announce.
int32_t FieldOffset(const VmLayout& layout, uint64_t class_address, const char* name) {
  if (layout.class_fields < 0 || layout.class_constants < 0 || layout.byte_array_data < 0 ||
      layout.array_header_length < 0 || layout.vm_symbols == nullptr || layout.field_injected == 0 ||
      layout.field_initialized == 0 || layout.field_generic == 0 || layout.field_contended == 0) {
    return kNoField;
  }
  const uint64_t stream = LoadField<uint64_t>(class_address, layout.class_fields);
  const uint64_t pool = LoadField<uint64_t>(class_address, layout.class_constants);
  if (stream == 0 || pool == 0) return kNoField;
  uint64_t at = stream + static_cast<uint64_t>(layout.byte_array_data);
  const uint64_t end = at + LoadField<uint32_t>(stream, layout.array_header_length);
  auto next = [&] { return ReadUnsigned5(&at, layout.unsigned5_excluded); };
  const uint32_t known = layout.field_initialized | layout.field_injected | layout.field_generic | layout.field_stable |
                         layout.field_contended;
  const uint32_t announcing[] = {layout.field_initialized, layout.field_generic, layout.field_contended};
  const uint32_t java_fields = next();
  const uint32_t fields = java_fields + next();
  for (uint32_t i = 0; i < fields && i < kMostFields && at < end; i++) {
    const uint32_t name_index = next();
    next();  // signature
    const uint32_t offset = next();
    next();  // access flags
    const uint32_t flags = next();
    if ((flags & ~known) != 0) return kNoField;
    for (const uint32_t announces : announcing) {
      if ((flags & announces) != 0) next();
    }
    const uint64_t symbol = (flags & layout.field_injected) != 0
                                ? layout.vm_symbols[name_index]
                                : LoadField<uint64_t>(pool, layout.pool_bytes + static_cast<int32_t>(name_index * 8));
    if (symbol != 0 && IsSymbol(layout, symbol, name)) return static_cast<int32_t>(offset);
  }
  return kNoField;
}

bool ReadHeapLayout(const VmLayout& vm, HeapLayout* heap) {
  if (vm.oop_mark < 0 || vm.oop_class < 0 || vm.oop_narrow_class < 0 || vm.collected_heap == nullptr ||
      vm.heap_in_pause < 0 || vm.heap_collections < 0) {
    return false;
  }
  bool known = false;
  if (IsFlagOn(vm, "UseZGC")) {
    const bool generations = vm.coloured_plain == nullptr || IsFlagOn(vm, "ZGenerational");
    heap->references = generations ? HeapLayout::kColoured : HeapLayout::kColouredPlain;
    if (generations ? vm.coloured == nullptr || vm.coloured_bad < 0 || vm.coloured_shift < 0
                    : vm.coloured_plain_bad < 0) {
      return false;
    }
  } else if (IsFlagOn(vm, "UseCompressedOops", &known)) {
    heap->references = HeapLayout::kNarrow;
    if (vm.narrow_oop_base == nullptr || vm.narrow_oop_shift == nullptr) return false;
  } else {
    heap->references = HeapLayout::kPlain;
    if (!known) return false;
  }
  if (IsFlagOn(vm, "UseCompactObjectHeaders")) {
    heap->classes = HeapLayout::kClassInMark;
    if (vm.mark_class_shift == 0) return false;
  } else {
    heap->classes =
        IsFlagOn(vm, "UseCompressedClassPointers", &known) ? HeapLayout::kNarrowClass : HeapLayout::kClassPointer;
    if (!known) return false;
  }
  return heap->classes == HeapLayout::kClassPointer ||
         (vm.narrow_class_base != nullptr && vm.narrow_class_shift != nullptr);
}

bool HeapPath::Start(uint64_t slot, uint64_t* object) {
  if (slot == 0 || IsSandboxed() || __atomic_load_n(&copying_refused, __ATOMIC_RELAXED)) return false;
  const uint64_t heap = *vm_.collected_heap;
  if (heap == 0) return false;
  links_count_ = 0;
  collections_ = LoadField<uint32_t>(heap, vm_.heap_collections);
  bad_colours_ = BadColours();
  slot_ = slot;
  slot_value_ = LoadField<uint64_t>(slot, 0);
  // The JVM's own variables are as wide as a pointer, whatever the heap's are.
  const auto references = heap_.references == HeapLayout::kNarrow ? HeapLayout::kPlain : heap_.references;
  return IsUndisturbed() && Decode(slot_value_, references, object) && *object != 0;
}

bool HeapPath::Follow(uint64_t* object, int32_t field, uint64_t* next) {
  if (links_count_ == kMaxLinks || field < 0) return false;
  uint64_t raw = 0;
  // Moved once at most: the copy is not moved again before the references to the original are gone.
  for (int moves = 0; moves < 2; moves++) {
    ObjectHeader header;
    const uint64_t address = *object + static_cast<uint64_t>(field);
    if (!CopyConfirmed(*object, address, &raw, heap_.reference_bytes(), &header)) return false;
    if ((header.mark & kForwardedMask) != kForwardedMask) {
      links_[links_count_++] = {address, raw};
      return Decode(raw, heap_.references, next);
    }
    *object = header.mark & ~kForwardedMask;
  }
  return false;
}

bool HeapPath::Copy(uint64_t* object, void* to, uint64_t bytes, uint64_t* class_address) {
  for (int moves = 0; moves < 2; moves++) {
    ObjectHeader header;
    if (!CopyConfirmed(*object, *object, to, bytes, &header)) return false;
    if ((header.mark & kForwardedMask) != kForwardedMask) {
      *class_address = ClassOf(header);
      return *class_address != 0;
    }
    *object = header.mark & ~kForwardedMask;
  }
  return false;
}

bool HeapPath::CopyInside(uint64_t from, void* to, uint64_t bytes) {
  return CopyConfirmed(0, from, to, bytes, nullptr);
}

// Why a copy is good if afterwards each reference of the path is as it was, and no pause or change of colours fell
// between. Collectors that move objects in pauses count these. Shenandoah moves while the program runs, but uses the
// original's memory again only after it has corrected all references to it, those of the path too. ZGC does so before,
// but changes the colours of good references first.
bool HeapPath::CopyConfirmed(uint64_t object, uint64_t from, void* to, uint64_t bytes, ObjectHeader* header) {
  iovec local[2 + 2 + kMaxLinks], remote[2 + 2 + kMaxLinks];
  uint64_t values[kMaxLinks] = {};
  uint32_t count = 0;
  long wanted = 0;
  auto add = [&](uint64_t address, void* copy, uint64_t copy_bytes) {
    local[count] = {copy, copy_bytes};
    remote[count++] = {reinterpret_cast<void*>(address), copy_bytes};
    wanted += static_cast<long>(copy_bytes);
  };
  // In this order: an object that is not marked as moved after its field was read had not moved before.
  add(from, to, bytes);
  if (header != nullptr) {
    *header = {};
    add(object + static_cast<uint64_t>(vm_.oop_mark), &header->mark, sizeof(header->mark));
    if (heap_.classes == HeapLayout::kNarrowClass) {
      add(object + static_cast<uint64_t>(vm_.oop_narrow_class), &header->class_word, sizeof(uint32_t));
    } else if (heap_.classes == HeapLayout::kClassPointer) {
      add(object + static_cast<uint64_t>(vm_.oop_class), &header->class_word, sizeof(uint64_t));
    }
  }
  for (uint32_t i = 0; i < links_count_; i++) add(links_[i].address, &values[i], heap_.reference_bytes());
  const long copied = RawSyscall(SYS_process_vm_readv, RawSyscall(SYS_getpid), reinterpret_cast<long>(local), count,
                                 reinterpret_cast<long>(remote), count, 0);
  if (copied == -EPERM || copied == -ENOSYS) __atomic_store_n(&copying_refused, true, __ATOMIC_RELAXED);
  if (copied != wanted) return false;
  for (uint32_t i = 0; i < links_count_; i++) {
    if (values[i] != links_[i].value) return false;
  }
  return LoadField<uint64_t>(slot_, 0) == slot_value_ && IsUndisturbed();
}

bool HeapPath::IsUndisturbed() const {
  const uint64_t heap = *vm_.collected_heap;
  return LoadField<uint8_t>(heap, vm_.heap_in_pause) == 0 &&
         LoadField<uint32_t>(heap, vm_.heap_collections) == collections_ && BadColours() == bad_colours_;
}

// Bits that a reference to an object that may have been moved has, at this moment; 0 = references have no colours.
uint64_t HeapPath::BadColours() const {
  if (heap_.references == HeapLayout::kColoured) {
    return LoadField<uint64_t>(LoadField<uint64_t>(*vm_.coloured, vm_.coloured_bad), 0);
  }
  if (heap_.references == HeapLayout::kColouredPlain) {
    return LoadField<uint64_t>(LoadField<uint64_t>(*vm_.coloured_plain, vm_.coloured_plain_bad), 0);
  }
  return 0;
}

bool HeapPath::Decode(uint64_t raw, HeapLayout::References references, uint64_t* object) const {
  *object = 0;
  switch (references) {
    case HeapLayout::kPlain:
      *object = raw;
      return true;
    case HeapLayout::kNarrow:
      if (raw != 0) *object = *vm_.narrow_oop_base + (raw << LoadInt(vm_.narrow_oop_shift));
      return true;
    case HeapLayout::kColoured:
      if (raw >> kColourBits == 0) return true;
      *object = raw >> LoadField<uint64_t>(LoadField<uint64_t>(*vm_.coloured, vm_.coloured_shift), 0);
      return (raw & bad_colours_) == 0;
    case HeapLayout::kColouredPlain:
      *object = raw;
      return (raw & bad_colours_) == 0;
  }
  return false;
}

uint64_t HeapPath::ClassOf(const ObjectHeader& header) const {
  if (heap_.classes == HeapLayout::kClassPointer) return header.class_word;
  const uint64_t narrow =
      heap_.classes == HeapLayout::kClassInMark ? header.mark >> vm_.mark_class_shift : header.class_word;
  return narrow == 0 ? 0 : *vm_.narrow_class_base + (narrow << LoadInt(vm_.narrow_class_shift));
}

}  // namespace cadastre
