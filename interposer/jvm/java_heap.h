// Objects on the Java heap, read from beside the JVM, while a collector may move them, change them or unmap them.
//
// All copies go through the kernel (process_vm_readv on our own process): where a load would fault it answers with an
// error. References are decoded as far as that takes no help of the collector: plain and compressed ones, those of ZGC
// whose colour says that they are up to date, and Shenandoah's through the forwarding word of an object that has been
// copied. What was read is worth nothing before it has been confirmed: that the references which led to it are the
// same after the copy, and that no pause of a collector fell between (java_heap.cc says why this is enough).
//
// Sources: OpenJDK, src/hotspot/share/oops/{oop,compressedOops,compressedKlass,markWord,fieldInfo}.hpp and
// gc/{x,z}/*Address*.hpp. Units: bytes. Thread- and signal-safety: no lock, no allocation, errno is kept; the system
// call is not made in a sandbox that may punish it. Errors: false.
#ifndef CADASTRE_INTERPOSER_JVM_JAVA_HEAP_H_
#define CADASTRE_INTERPOSER_JVM_JAVA_HEAP_H_

#include <stdint.h>

#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// Where a field lies in objects of the class (not of its superclasses), by name; also of a field that HotSpot adds.
// kNoField: there is none, or the table has a form that is not known. class_address: Klass*.
int32_t FieldOffset(const VmLayout& layout, uint64_t class_address, const char* name);

// How this JVM stores references. Constant once Java code has run.
struct HeapLayout {
  enum References : uint8_t { kPlain, kNarrow, kColoured, kColouredPlain };
  enum Classes : uint8_t { kClassPointer, kNarrowClass, kClassInMark };
  References references;
  Classes classes;

  uint32_t reference_bytes() const { return references == kNarrow ? 4 : 8; }
};

// False if this JVM's tables and flags do not tell.
bool ReadHeapLayout(const VmLayout& vm, HeapLayout* heap);

// The beginning of an object: its mark, and what tells its class.
struct ObjectHeader {
  uint64_t mark, class_word;
};

// A walk along references. One object a walk, on its stack.
class HeapPath {
 public:
  HeapPath(const VmLayout& vm, const HeapLayout& heap) : vm_(vm), heap_(heap) {}

  // Begins at the object to which the JVM's own variable at `slot` refers.
  bool Start(uint64_t slot, uint64_t* object);

  // The object to which *object's field refers; 0 = null. *object is corrected if it has been moved.
  bool Follow(uint64_t* object, int32_t field, uint64_t* next);

  // Copies from *object on, `bytes` of it, and says which class it has; *object is corrected if it has been moved.
  bool Copy(uint64_t* object, void* to, uint64_t bytes, uint64_t* class_address);

  // Copies `bytes` at an address inside of an object.
  bool CopyInside(uint64_t from, void* to, uint64_t bytes);

 private:
  static constexpr uint32_t kMaxLinks = 10;
  // A field that was followed, and what it held.
  struct Link {
    uint64_t address, value;
  };

  bool CopyConfirmed(uint64_t object, uint64_t from, void* to, uint64_t bytes, ObjectHeader* header);
  bool IsUndisturbed() const;
  uint64_t BadColours() const;
  bool Decode(uint64_t raw, HeapLayout::References references, uint64_t* object) const;
  uint64_t ClassOf(const ObjectHeader& header) const;

  const VmLayout& vm_;
  const HeapLayout& heap_;
  uint64_t slot_ = 0, slot_value_ = 0;
  uint64_t bad_colours_ = 0;
  uint32_t collections_ = 0;
  uint32_t links_count_ = 0;
  Link links_[kMaxLinks];
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_JAVA_HEAP_H_
