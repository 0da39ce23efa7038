// Entry points that a program has only when its allocator brings them: jemalloc's mallocx, tcmalloc's tc_malloc,
// mimalloc's mi_malloc, C23's free_sized, operator new, ... (all rows: optional_entries.def).
//
// Programs ask "is there a mallocx?" by a weak reference or by dlsym, and take the answer for the allocator's name. So
// our definitions sleep: they are exported under a hidden symbol version that nobody asks for, which every look-up
// passes over. When the loader relocates us, those wake which the next allocator has too (their version index becomes
// the default one), and what others have bound before is redirected (symbol_slots.h). The README says what else was
// tried.
//
// A family is a set of functions that hand blocks to each other; all of one family come from one library.
//
// Thread- and signal-safety: WakeEntries start-up only; afterwards the table does not change. Allocates nothing.
// Errors: an entry that cannot be woken sleeps on, and the program calls its allocator directly.
#ifndef CADASTRE_INTERPOSER_OPTIONAL_ENTRIES_H_
#define CADASTRE_INTERPOSER_OPTIONAL_ENTRIES_H_

#include <link.h>
#include <stdint.h>

#include "interposer/entry_shape.h"

namespace cadastre {

enum class EntryFamily : uint8_t {
  kProvider,  // names without a prefix: of the library that serves malloc behind us
  kJe,        // je_, tc_, mi_: of the first library behind us that has je_malloc, tc_malloc, mi_malloc
  kTc,
  kMi,
  kLibc,  // malloc and its family of a libc beside the library that serves malloc; see LibcEntry
};
inline constexpr int kEntryFamilies = 4;  // that can be woken

using EntryFunction = uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

// As large as its alignment, so that rows lie side by side in their section.
struct alignas(64) OptionalEntry {
  EntryFunction real;         // null: asleep
  uint8_t is_counted_inside;  // what it calls comes through another hook of ours, which counts
  EntryFamily family;
  EntryShape shape;
  const char* name;
  void* hook;
  const void* stands_before;  // the definition that programs would have found: `real`, or what `real` stands for
};
static_assert(sizeof(OptionalEntry) == 64);

// Wakes what the libraries behind us have. Call once, when RealAllocatorResolve has succeeded.
void WakeEntries();

// Tries each form of new once: where the allocator's code comes through one of our other hooks (jemalloc's aligned new
// calls aligned_alloc), that hook counts and the form becomes a pure tail jump. Call under kGuardOwnWork, outside
// hooks.
void ProbeOperators();

// The entry that stands before `found`, the function `name` of a libc beside which another library serves malloc: a
// program that asks libc's handle for malloc gets that one, whatever is preloaded (Java's foreign linker does). nullptr
// if `found` is another one.
const OptionalEntry* LibcEntry(const char* name, void* found);

// The woken entry of that name; nullptr if it sleeps or there is none.
const OptionalEntry* AwakeEntry(const char* name);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_OPTIONAL_ENTRIES_H_
