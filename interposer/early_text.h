// Comparing names before the executable is relocated: libc's strcmp may be bound to the executable's procedure linkage
// table (where a program that is not position-independent takes its address), and that does not work yet. Everything
// that runs while we are relocated calls nothing outside of libcadastre.so (scripts/check_hot_path).
#ifndef CADASTRE_INTERPOSER_EARLY_TEXT_H_
#define CADASTRE_INTERPOSER_EARLY_TEXT_H_

namespace cadastre {

// True if `text` begins with `prefix`.
inline bool TextStartsWith(const char* text, const char* prefix) {
  for (; *prefix != '\0'; text++, prefix++) {
    if (*text != *prefix) return false;
  }
  return true;
}

inline bool TextEquals(const char* a, const char* b) {
  for (; *a == *b; a++, b++) {
    if (*a == '\0') return true;
  }
  return false;
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_EARLY_TEXT_H_
