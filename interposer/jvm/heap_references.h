// How this JVM writes references, classes and arrays on the Java heap, and what they mean.
//
// References are decoded as far as that takes no help of the collector: plain and compressed ones, and those of Z whose
// colour says that they are up to date. Which form is in use follows from the JVM's flags and tables.
// Sources: OpenJDK, src/hotspot/share/oops/{oop,compressedOops,compressedKlass,markWord,arrayOop}.hpp,
// gc/z/zAddress.hpp, gc/x/xAddress.hpp (colours). Units: bytes. Thread- and signal-safety: reads only, and only
// variables of the JVM's. Errors: false.
#ifndef CADASTRE_INTERPOSER_JVM_HEAP_REFERENCES_H_
#define CADASTRE_INTERPOSER_JVM_HEAP_REFERENCES_H_

#include <stdint.h>

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// The beginning of an object: its mark, and the word that tells its class (0 where the mark does).
struct ObjectHeader {
  uint64_t mark, class_word;
};

// Constant once the JVM has its heap, which is when it has a class java.lang.Thread.
struct HeapForm {
  uint32_t reference_bytes;     // of a field: 4 (compressed) or 8
  const uint64_t* narrow_base;  // of compressed references: address = base + (value << shift)
  const uint64_t* narrow_shift;
  const uint64_t* bad_colours;  // mask: of a good reference none of these bits is set; nullptr = no colours
  const uint64_t* colour_bits;  // the address lies above so many bits; nullptr = in all of the reference

  int32_t mark;          // where it is in an object
  int32_t class_word;    // and the class; kNoField: in the mark, above class_mark_bits bits
  uint32_t class_bytes;  // 8: an address; 4: compressed like references, as it is in the mark too
  uint32_t class_mark_bits;
  const uint64_t* class_base;
  const uint64_t* class_shift;

  int32_t array_length;  // from an array's start to its length (u4)
  int32_t array_data;    // to the first element of byte[] and char[]
};

// False if this JVM's tables and flags do not tell.
bool ReadHeapForm(const VmLayout& layout, HeapForm* form);

// Bits that a reference to an object which may have been moved has at this moment; 0 = references have no colours.
uint64_t BadColours(const HeapForm& form);

// The address of the object; 0 = null. bad_colours: as they were before the reference was read. A variable of the
// JVM's is as wide as an address whatever the fields of objects are. False: a collector has yet to correct it.
bool DecodeVariable(const HeapForm& form, uint64_t bad_colours, uint64_t reference, uint64_t* object);
bool DecodeField(const HeapForm& form, uint64_t bad_colours, uint64_t reference, uint64_t* object);

// Klass* of an object. 0 = not known.
uint64_t ClassOf(const HeapForm& form, const ObjectHeader& header);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_HEAP_REFERENCES_H_
