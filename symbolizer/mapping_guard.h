// Makes a private mapping of a file safe to read: a page that the file has no more (it was cut, or the disk fails)
// reads as zeros instead of ending the program with SIGBUS.
//
// While guards live there is a handler of SIGBUS; a fault outside of all their ranges goes to what was there before.
// Errors: none; without memory for a page of zeros the signal does what it would have done. Thread-safety: guards are
// made and destroyed by one thread; the ranges may be read by any.
//
// Example:
//   MappingGuard guard(mapping, bytes);
//   Parse(mapping, bytes);   // whoever cuts the file now costs us its end, not our life
#ifndef CADASTRE_SYMBOLIZER_MAPPING_GUARD_H_
#define CADASTRE_SYMBOLIZER_MAPPING_GUARD_H_

#include <cstddef>
#include <cstdint>

namespace cadastre {

class MappingGuard {
 public:
  // The mapping must outlive the guard, and be the owner's alone: pages of it may be mapped over.
  MappingGuard(const void* mapping, size_t bytes);
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;

  // The first of the guards that live; for the handler.
  static const MappingGuard* First();
  const MappingGuard* next() const { return next_; }
  bool Has(uintptr_t address) const { return address >= begin_ && address < end_; }

 private:
  const uintptr_t begin_, end_;
  MappingGuard* next_;  // all that live are a list
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_MAPPING_GUARD_H_
