// Finds a symbol's definition without dlsym: dlsym allocates, keeps per-thread error state, takes the loader's lock,
// lives in another library before glibc 2.34 (and libcadastre.so needs no symbol version above GLIBC_2.17), and is
// itself a name that programs interpose.
//
// Walks the link map of the base namespace in load order (== search order for everything that was there at start).
// Thread- and signal-safety: reads loader structures without a lock: meant for start-up, when the list does not shrink,
// and for rare look-ups outside hooks. Allocates nothing. Errors: nullptr.
//
// Example:
//   auto* close = reinterpret_cast<int (*)(void*)>(FindLoadedFunction("dlclose"));
#ifndef CADASTRE_INTERPOSER_ELF_LOOKUP_H_
#define CADASTRE_INTERPOSER_ELF_LOOKUP_H_

#include <link.h>
#include <stdint.h>

#include "interposer/elf_dynamic.h"

namespace cadastre {

// The definition of `name` in `map` itself: default or unversioned, function or ifunc (resolved by calling the
// resolver).
void* FindInLibrary(const link_map* map, const char* name);

// Would FindInLibrary find it? Calls no resolver: the library may not be relocated yet.
bool LibraryDefines(const link_map* map, const char* name);

// Bit 15 of a version index: not the default version. Such a definition is there for old binaries that ask for its
// version; nobody else finds it.
inline constexpr Elf64_Versym kHiddenVersion = 0x8000;
void* FindHiddenInLibrary(const link_map* map, const char* name);
// Where that version index stands in the library's own tables (not writable).
Elf64_Versym* HiddenVersionOf(const link_map* map, const char* name);
// The index by which `map` speaks of a version that it needs from another library; 0 if it needs none of that name.
Elf64_Versym NeededVersionOf(const link_map* map, const char* version);

const link_map* FirstLibrary();                  // head of the base namespace's list
const link_map* OwnLibrary();                    // libcadastre.so
const link_map* LibraryOf(const void* address);  // the library whose load address is next below; nullptr if none

// The first library behind ours that defines `name`: what RTLD_NEXT would find.
const link_map* NextLibraryWith(const char* name);
// That definition itself; nullptr if there is none.
void* FindNextFunction(const char* name);

// The same, looked up once: `slot` is a word of that function's own, null before.
template <typename Function>
Function* NextFunction(void** slot, const char* name) {
  void* function = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
  if (function == nullptr) {
    function = FindNextFunction(name);
    __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  }
  return reinterpret_cast<Function*>(function);
}
// The first library of the whole list that defines it and is not ours.
const link_map* AnyLibraryWith(const char* name);

// The first definition in any loaded library but ours.
void* FindLoadedFunction(const char* name);

// A symbol of an ELF image given by its header (the vDSO, libunwind), and the image's tables.
void* FindInImage(uint64_t image, const char* name);
DynamicTables ReadImage(uint64_t image);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_ELF_LOOKUP_H_
