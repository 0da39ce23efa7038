// Strings of the profile that are written once, however often they are brought. Never forgotten: a stack is told from
// another by the numbers of its names, and a name with two numbers would split its sites.
//
// Thread- and signal-safety: lock-free after InternedStringsInit. Errors: 0 where the text is empty or the profile has
// no room.
#ifndef CADASTRE_INTERPOSER_INTERNED_STRINGS_H_
#define CADASTRE_INTERPOSER_INTERNED_STRINGS_H_

#include <stddef.h>
#include <stdint.h>

namespace cadastre {

// For a profile with that much room (ProfileView::string_units). False: no memory.
bool InternedStringsInit(uint64_t string_units);

// The string with this text, which is added if need be.
uint32_t InternString(const char* text, size_t length);

// The same, but 0 instead of a new string.
uint32_t FindInternedString(const char* text, size_t length);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_INTERNED_STRINGS_H_
