// Objects on the Java heap, read from beside the JVM, while a collector may move them, change them or unmap them.
//
// All copies from the heap go through the kernel (checked_read.h); the JVM's own variable at which a path begins lasts
// as long as its thread, and is read as it is (lasting_memory.h). What was read is worth nothing before it has been
// confirmed. A copy is good if, after it was made, each reference that led to it is as it was, no pause of a collector
// goes on or has been since the path began, and the colours of references are the same:
//   - Collectors that move objects in pauses (serial, parallel, G1, the full collections of all) count these.
//   - Shenandoah moves objects while the program runs, but uses an object's old place again only after it has corrected
//     all references to it, those of the path too. The mark of an object that has been moved says where it is now.
//   - Z uses an old place again sooner, but references to it turn bad first.
// Sources: as heap_references.h. Units: bytes. Thread- and signal-safety: safe in hooks: no lock, no allocation; one
// system call for each function, under 600 bytes of stack. Errors: false: the path has been disturbed, it may begin
// anew later.
//
// Example:
//   HeapPath path(layout, form);
//   if (path.Start(slot, &thread) && path.Follow(&thread, name_field, &name) && name != 0) ...
#ifndef CADASTRE_INTERPOSER_JVM_HEAP_PATH_H_
#define CADASTRE_INTERPOSER_JVM_HEAP_PATH_H_

#include <stddef.h>
#include <stdint.h>

#include "interposer/jvm/heap_references.h"
#include "interposer/jvm/vm_structs.h"

namespace cadastre {

// Do this JVM's tables say when a collector pauses it? What a HeapPath must have.
bool KnowsPauses(const VmLayout& layout);

// A walk along references. One object a walk, on its stack.
class HeapPath {
 public:
  HeapPath(const VmLayout& layout, const HeapForm& form) : layout_(layout), form_(form) {}

  // Begins at the object to which the JVM's own variable at `slot` refers; not null. The variable is one of the calling
  // thread's: it does not go away meanwhile.
  bool Start(uint64_t slot, uint64_t* object);

  // The object to which *object's field refers; 0 = null. *object is corrected if it has been moved.
  bool Follow(uint64_t* object, int32_t field, uint64_t* next);

  // Copies `bytes` from `offset` in *object on; class_address, if asked for: Klass* of the object. *object is corrected
  // if it has been moved.
  bool Copy(uint64_t* object, int32_t offset, void* to, size_t bytes, uint64_t* class_address = nullptr);

  // The same for a reference that was just copied from there.
  bool FollowCopied(uint64_t object, int32_t field, uint64_t reference, uint64_t* next);

  // Copies `bytes` at an address inside of an object that the path has led to.
  bool CopyInside(uint64_t from, void* to, size_t bytes);

 private:
  static constexpr uint32_t kMaxLinks = 11;
  // A reference that was followed: where it is, and what it was. The first is the JVM's variable.
  struct Link {
    uint64_t address, value;
  };

  enum class ClassWord { kIgnored, kWanted };
  bool CopyConfirmed(uint64_t object, uint64_t from, void* to, size_t bytes, ObjectHeader* header,
                     ClassWord class_word);
  bool IsUndisturbed() const;

  const VmLayout& layout_;
  const HeapForm& form_;
  uint64_t bad_colours_ = 0;
  uint32_t collections_ = 0;
  uint32_t links_count_ = 0;
  Link links_[kMaxLinks];
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_JVM_HEAP_PATH_H_
