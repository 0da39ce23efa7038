// Redirects what loaded libraries have already bound: the words in which the loader stored a function's address (global
// offset table entries and pointers in data).
//
// Exists because all libraries but ours and the executable are relocated before we are: what they bound at once
// (-z now, and every weak reference that is tested) is the allocator's function and not our hook. Only a word that
// holds exactly that function under exactly that name changes, so a null stays null and another library's function
// stays. Calls of the owner to itself are bound to itself before the loader would bind them to us (tc_valloc calls
// tc_memalign: one allocation, which its first hook counts).
//
// Thread- and signal-safety: start-up only (the loader's own thread; the executable need not be relocated
// yet). Allocates nothing. Errors: a word whose page
// cannot be made writable stays as it is.
#ifndef CADASTRE_INTERPOSER_SYMBOL_SLOTS_H_
#define CADASTRE_INTERPOSER_SYMBOL_SLOTS_H_

#include <link.h>
#include <stddef.h>

namespace cadastre {

struct Redirection {
  const char* name;
  const void* from;
  const void* to;
  const link_map* owner;  // the library that defines `from`
  bool is_bound_inside;   // the owner's own calls go to `from`; else they are left to the loader
};

void RedirectSlots(const Redirection* redirections, size_t count);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_SYMBOL_SLOTS_H_
