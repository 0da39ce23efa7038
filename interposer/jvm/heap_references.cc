#include "interposer/jvm/heap_references.h"

#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/vm_flags.h"

namespace cadastre {
namespace {

// gc/z/zAddress.hpp: where references have colours of their own these are below this bit, in null too.
constexpr uint32_t kColourBits = 16;

// A word that a structure of Z's points to.
const uint64_t* ZWord(const uint64_t* instance, int32_t offset) {
  if (instance == nullptr || *instance == 0 || offset < 0) return nullptr;
  return LoadField<const uint64_t*>(*instance, offset);
}

bool ReadColours(const VmLayout& layout, HeapForm* form) {
  // 21 to 23 have two of them.
  const bool generational = layout.z_load_bad_mask >= 0 &&
                            (layout.x_weak_bad_mask < 0 || IsFlagOn(layout, "ZGenerational", layout.feature >= 23));
  if (generational) {
    form->bad_colours = ZWord(layout.z_globals, layout.z_load_bad_mask);
    form->colour_bits = ZWord(layout.z_globals, layout.z_load_shift);
    return form->bad_colours != nullptr && form->colour_bits != nullptr;
  }
  // One generation: the heap is mapped once for each colour, so that a reference is an address as it is. "Weak": also
  // of an object that this cycle has not marked yet.
  form->bad_colours = layout.x_weak_bad_mask >= 0 ? ZWord(layout.x_globals, layout.x_weak_bad_mask)
                                                  : ZWord(layout.z_globals, layout.z_weak_bad_mask);
  return form->bad_colours != nullptr;
}

bool ReadReferences(const VmLayout& layout, HeapForm* form) {
  form->reference_bytes = 8;
  if (IsFlagOn(layout, "UseZGC", false)) return ReadColours(layout, form);
  if (!IsFlagOn(layout, "UseCompressedOops", false)) return true;
  form->reference_bytes = 4;
  form->narrow_base = layout.narrow_oop_base;
  form->narrow_shift = layout.narrow_oop_shift;
  return form->narrow_base != nullptr && form->narrow_shift != nullptr;
}

// The mark, the class in 4 or 8 bytes or within the mark; of an array then the length.
bool ReadHeader(const VmLayout& layout, HeapForm* form) {
  form->mark = layout.oop_mark;
  form->class_base = layout.narrow_class_base;
  form->class_shift = layout.narrow_class_shift;
  form->class_bytes = 4;
  if (IsFlagOn(layout, "UseCompactObjectHeaders", false)) {
    form->class_word = kNoField;
    form->class_mark_bits = layout.mark_class_shift;
    form->array_length = layout.oop_mark + 8;
    if (form->class_mark_bits == 0) return false;
  } else {
    const bool narrow = IsFlagOn(layout, "UseCompressedClassPointers", true);
    form->class_word = narrow ? layout.oop_narrow_class : layout.oop_class;
    form->class_bytes = narrow ? 4 : 8;
    form->array_length = form->class_word + static_cast<int32_t>(form->class_bytes);
    if (form->class_word < 0) return false;
  }
  return form->mark >= 0 && (form->class_bytes == 8 || (form->class_base != nullptr && form->class_shift != nullptr));
}

uint64_t Expand(const uint64_t* base, const uint64_t* shift, uint64_t value) {
  return value == 0 ? 0 : *base + (value << (LoadField<uint32_t>(reinterpret_cast<uint64_t>(shift), 0) & 63));
}

}  // namespace

bool ReadHeapForm(const VmLayout& layout, HeapForm* form) {
  *form = {};
  if (layout.flags == nullptr || !ReadReferences(layout, form) || !ReadHeader(layout, form)) return false;
  // Until 22 the elements begin at a whole word.
  form->array_data = form->array_length + 4;
  if (layout.feature < 23) form->array_data = (form->array_data + 7) & ~7;
  return true;
}

uint64_t BadColours(const HeapForm& form) {
  return form.bad_colours != nullptr ? __atomic_load_n(form.bad_colours, __ATOMIC_ACQUIRE) : 0;
}

bool DecodeVariable(const HeapForm& form, uint64_t bad_colours, uint64_t reference, uint64_t* object) {
  const bool is_null = reference >> (form.colour_bits != nullptr ? kColourBits : 0) == 0;
  const uint64_t shift = form.colour_bits != nullptr ? __atomic_load_n(form.colour_bits, __ATOMIC_RELAXED) & 63 : 0;
  *object = is_null ? 0 : reference >> shift;
  return is_null || (reference & bad_colours) == 0;
}

bool DecodeField(const HeapForm& form, uint64_t bad_colours, uint64_t reference, uint64_t* object) {
  if (form.reference_bytes == 8) return DecodeVariable(form, bad_colours, reference, object);
  *object = Expand(form.narrow_base, form.narrow_shift, reference);
  return true;
}

uint64_t ClassOf(const HeapForm& form, const ObjectHeader& header) {
  if (form.class_bytes == 8) return header.class_word;
  return Expand(form.class_base, form.class_shift,
                form.class_word < 0 ? header.mark >> form.class_mark_bits : header.class_word);
}

}  // namespace cadastre
