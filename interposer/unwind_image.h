// libunwind as memory of our own: its file is mapped, not loaded.
//
// No loader lists it, so no name of the program's binds to it, what the program loads under its name is the program's,
// and nothing that it depends on is drawn in. A program pays one mapping for it until a stack needs it: dlopen was a
// sixth of a millisecond and 24 page faults in the start of each.
// Then its writable segment is made and relocated. Memory and string functions that it imports are libc's, memory is
// private (private_memory.h), and everything else is refused: locks (the caller lets one thread in at a time), signal
// masks, pipes and files, which it has for unwinding its own process in ways of its own.
//
// Thread- and signal-safety: Map in the constructor, outside hooks. Prepare is safe in hooks: a few system calls, no
// lock, no allocation; one caller at a time. In a sandbox it makes no call, and fails. Errors: false; a file that is no
// shared library, or one with a shape that is not known, is refused.
//
// Example:
//   static UnwindImage image;
//   image.Map(path);
//   if (image.Prepare()) step = image.Find("_Ux86_64_step");
#ifndef CADASTRE_INTERPOSER_UNWIND_IMAGE_H_
#define CADASTRE_INTERPOSER_UNWIND_IMAGE_H_

#include <stdint.h>

namespace cadastre {

class UnwindImage {
 public:
  constexpr UnwindImage() = default;
  UnwindImage(const UnwindImage&) = delete;
  UnwindImage& operator=(const UnwindImage&) = delete;

  bool Map(const char* path);
  bool Prepare();
  // A function of it, once it is prepared; nullptr: it has none of that name.
  void* Find(const char* name) const;

 private:
  bool PlaceWritable();
  bool Relocate();

  uint64_t start_ = 0;  // 0: not mapped
  uint64_t file_bytes_ = 0, mapped_bytes_ = 0;
  uint64_t writable_start_ = 0, writable_end_ = 0;
  bool is_prepared_ = false;
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_UNWIND_IMAGE_H_
