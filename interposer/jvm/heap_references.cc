#include "interposer/jvm/heap_references.h"

#include "interposer/jvm/code_cache.h"
#include "interposer/jvm/vm_flags.h"

namespace cadastre {
namespace {

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

}  // namespace

bool ReadHeapForm(const VmLayout& layout, HeapForm* form) {
  if (layout.flags == nullptr) return false;
  *form = {};
  if (IsFlagOn(layout, "UseZGC", false) && !ReadColours(layout, form)) return false;
  const bool compressed = IsFlagOn(layout, "UseCompressedOops", false);
  if (compressed && (layout.narrow_base == nullptr || layout.narrow_shift == nullptr)) return false;
  form->reference_bytes = compressed ? 4 : 8;
  // The header: a mark of 8 bytes, the class in 4 or 8 or within the mark; then the length.
  form->array_length = IsFlagOn(layout, "UseCompactObjectHeaders", false)     ? 8
                       : IsFlagOn(layout, "UseCompressedClassPointers", true) ? 12
                                                                              : 16;
  // Until 22 the elements begin at a whole word.
  form->array_data = form->array_length + 4;
  if (layout.feature < 23) form->array_data = (form->array_data + 7) & ~7;
  return true;
}

uint64_t AddressOfRoot(const HeapForm& form, uint64_t root) {
  if (form.bad_colours == nullptr) return root;
  // Null has no colour, or every.
  if ((root & __atomic_load_n(form.bad_colours, __ATOMIC_RELAXED)) != 0) return 0;
  return form.colour_bits != nullptr ? root >> (__atomic_load_n(form.colour_bits, __ATOMIC_RELAXED) & 63) : root;
}

uint64_t AddressOfField(const VmLayout& layout, const HeapForm& form, uint64_t field) {
  if (form.reference_bytes == 8) return AddressOfRoot(form, field);
  const uint64_t shift = LoadField<uint32_t>(reinterpret_cast<uint64_t>(layout.narrow_shift), 0) & 63;
  return field == 0 ? 0 : *layout.narrow_base + (field << shift);
}

bool ReadHeapMoment(const VmLayout& layout, HeapMoment* moment) {
  const uint64_t heap = __atomic_load_n(layout.heap, __ATOMIC_ACQUIRE);
  if (heap == 0) return false;
  moment->paused = LoadField<uint8_t>(heap, layout.heap_paused) != 0;
  moment->cycles = LoadField<uint32_t>(heap, layout.heap_cycles);
  return true;
}

}  // namespace cadastre
