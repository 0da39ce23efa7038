#include "interposer/jvm/heap_path.h"

#include "interposer/jvm/checked_read.h"
#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/lasting_memory.h"

namespace cadastre {
namespace {

// OpenJDK src/hotspot/share/oops/markWord.hpp: these two bits say that the rest is the address of the object's copy.
constexpr uint64_t kForwardedMask = 3;

uint64_t CollectedHeapOf(const VmLayout& layout) { return __atomic_load_n(layout.collected_heap, __ATOMIC_ACQUIRE); }

}  // namespace

bool KnowsPauses(const VmLayout& layout) {
  return layout.collected_heap != nullptr && layout.heap_in_pause >= 0 && layout.heap_collections >= 0;
}

bool HeapPath::Start(uint64_t slot, uint64_t* object) {
  const uint64_t heap = CollectedHeapOf(layout_);
  links_count_ = 0;
  if (slot == 0 || heap == 0) return false;
  collections_ = LoadField<uint32_t>(heap, layout_.heap_collections);
  bad_colours_ = BadColours(form_);
  LastingMemory vm;
  uint64_t value;
  if (!vm.Load(slot, &value) || !IsUndisturbed()) return false;
  links_[links_count_++] = {slot, value};
  return DecodeVariable(form_, bad_colours_, value, object) && *object != 0;
}

bool HeapPath::Follow(uint64_t* object, int32_t field, uint64_t* next) {
  uint64_t reference = 0;
  return field >= 0 && Copy(object, field, &reference, form_.reference_bytes) &&
         FollowCopied(*object, field, reference, next);
}

bool HeapPath::FollowCopied(uint64_t object, int32_t field, uint64_t reference, uint64_t* next) {
  if (links_count_ == kMaxLinks || field < 0) return false;
  links_[links_count_++] = {object + static_cast<uint64_t>(field), reference};
  return DecodeField(form_, bad_colours_, reference, next);
}

bool HeapPath::Copy(uint64_t* object, int32_t offset, void* to, size_t bytes, uint64_t* class_address) {
  // Moved once at most: the copy is not moved again before the references to the original are gone.
  for (int moves = 0; moves < 2; moves++) {
    ObjectHeader header = {};
    const ClassWord class_word = class_address != nullptr ? ClassWord::kWanted : ClassWord::kIgnored;
    if (!CopyConfirmed(*object, *object + static_cast<uint64_t>(offset), to, bytes, &header, class_word)) return false;
    if ((header.mark & kForwardedMask) != kForwardedMask) {
      if (class_address == nullptr) return true;
      *class_address = ClassOf(form_, header);
      return *class_address != 0;
    }
    *object = header.mark & ~kForwardedMask;
  }
  return false;
}

bool HeapPath::CopyInside(uint64_t from, void* to, size_t bytes) {
  return CopyConfirmed(0, from, to, bytes, nullptr, ClassWord::kIgnored);
}

__attribute__((noinline)) bool HeapPath::CopyConfirmed(uint64_t object, uint64_t from, void* to, size_t bytes,
                                                       ObjectHeader* header, ClassWord class_word) {
  constexpr uint32_t kMostPieces = 1 + 2 + kMaxLinks;
  iovec copies[kMostPieces], originals[kMostPieces];
  uint64_t values[kMaxLinks] = {};
  uint32_t count = 0;
  auto add = [&](uint64_t address, void* copy, size_t copy_bytes) {
    copies[count] = {copy, copy_bytes};
    originals[count++] = {reinterpret_cast<void*>(address), copy_bytes};
  };
  // In this order: an object that is not marked as moved after its field was read had not moved before.
  add(from, to, bytes);
  if (header != nullptr) {
    add(object + static_cast<uint64_t>(form_.mark), &header->mark, sizeof(header->mark));
    if (class_word == ClassWord::kWanted && form_.class_word >= 0) {
      add(object + static_cast<uint64_t>(form_.class_word), &header->class_word, form_.class_bytes);
    }
  }
  for (uint32_t i = 1; i < links_count_; i++) add(links_[i].address, &values[i], form_.reference_bytes);
  if (!CheckedReadPieces(copies, originals, count)) return false;
  // The first one is the JVM's own variable: it lasts, and each piece that the kernel copies costs as much as a call.
  if (links_count_ > 0) values[0] = __atomic_load_n(reinterpret_cast<uint64_t*>(links_[0].address), __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < links_count_; i++) {
    if (values[i] != links_[i].value) return false;
  }
  return IsUndisturbed();
}

bool HeapPath::IsUndisturbed() const {
  const uint64_t heap = CollectedHeapOf(layout_);
  return LoadField<uint8_t>(heap, layout_.heap_in_pause) == 0 &&
         LoadField<uint32_t>(heap, layout_.heap_collections) == collections_ && BadColours(form_) == bad_colours_;
}

}  // namespace cadastre
