// References on the Java heap: from what a field holds to an address, and whether the heap has held still meanwhile.
//
// The reader is in native code as a rule, and a collector may work at the same time. Three things are asked for:
//   - HeapMoment before and after are equal and no pause goes on: no collector that moves objects in a pause (serial,
//     parallel, G1, the full collections of all) has done so in between.
//   - A reference that is read again afterwards is still the same: a collector that moves objects beside the program
//     (Shenandoah) uses an object's old place again only after it has changed all references to it.
//   - Z: only references of the good colour, before and after. They name the place where the object is now; where it
//     moves, they turn bad first.
// Source: OpenJDK, src/hotspot/share/gc/z/zAddress.hpp (colours), oops/compressedOops.hpp, oops/arrayOop.hpp.
// Thread- and signal-safety: reads only. Errors: false, or the address 0.
#ifndef CADASTRE_INTERPOSER_JVM_HEAP_REFERENCES_H_
#define CADASTRE_INTERPOSER_JVM_HEAP_REFERENCES_H_

#include <stdint.h>

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

struct HeapForm {
  uint32_t reference_bytes;     // of a field: 4 (compressed) or 8
  const uint64_t* bad_colours;  // mask: of a good reference none of these bits is set; nullptr = no colours
  const uint64_t* colour_bits;  // the address lies above so many bits; nullptr = in all of the reference
  int32_t array_length;         // from an array's start to its length (u4)
  int32_t array_data;           // to the first element of byte[] and char[]
};

// Once the JVM has its heap, which is when it has a class java.lang.Thread.
bool ReadHeapForm(const VmLayout& layout, HeapForm* form);

// The address; 0 = null, or not known now. A root is as wide as an address whatever the fields are.
uint64_t AddressOfRoot(const HeapForm& form, uint64_t root);
uint64_t AddressOfField(const VmLayout& layout, const HeapForm& form, uint64_t field);

struct HeapMoment {
  bool paused;
  uint32_t cycles;  // collections begun so far
};
// False: there is no heap yet. The layout must have heap, heap_paused and heap_cycles.
bool ReadHeapMoment(const VmLayout& layout, HeapMoment* moment);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_HEAP_REFERENCES_H_
