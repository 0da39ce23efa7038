// libstdc++'s aligned operator new, with the size that the program asked for.
//
// libstdc++ rounds the size of an aligned block up to its alignment and then calls aligned_alloc, so that hook would
// record a size that nobody asked for. These do what it does, with the caller's size, as many tries as it makes and its
// new_handler between them; the exception is its own. Its delete calls free, so the pairs stay right.
//
// Thread- and signal-safety: AlignedNewInsteadOf start-up only; the functions as operator new is.
#ifndef CADASTRE_INTERPOSER_ALIGNED_NEW_H_
#define CADASTRE_INTERPOSER_ALIGNED_NEW_H_

#include <link.h>

namespace cadastre {

// What to call instead of `function`, which `library` defines under `name`; nullptr if it is not an aligned new of
// libstdc++.
void* AlignedNewInsteadOf(const char* name, const link_map* library, void* function);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_ALIGNED_NEW_H_
