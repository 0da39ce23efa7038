// Whose call is it: the allocator's own?
//
// Thread- and signal-safety: any time; reads loaded program headers once. Allocates nothing.
#ifndef CADASTRE_INTERPOSER_ALLOCATOR_CODE_H_
#define CADASTRE_INTERPOSER_ALLOCATOR_CODE_H_

#include <stdint.h>

namespace cadastre {

// Does `pc` lie in the library that serves malloc, and is that library an allocator and nothing else: not libc, not a
// program with malloc in it? False while the allocator is not known.
bool IsAllocatorCode(uint64_t pc);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_ALLOCATOR_CODE_H_
