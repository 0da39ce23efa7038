// Strings of the profile that are written once, however often they are brought.
//
// Thread- and signal-safety: lock-free, safe in hooks. Errors: 0 where the text is empty or the profile has no room.
#ifndef CADASTRE_INTERPOSER_INTERNED_STRINGS_H_
#define CADASTRE_INTERPOSER_INTERNED_STRINGS_H_

#include <stddef.h>
#include <stdint.h>

namespace cadastre {

// The string with this text, which is added if need be. Texts are told apart by 64 bits of hash: among a million two
// are taken for one with probability 3e-8.
uint32_t InternString(const char* text, size_t length);

// The same, but 0 instead of a new string.
uint32_t FindInternedString(const char* text, size_t length);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_INTERNED_STRINGS_H_
