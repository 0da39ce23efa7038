#include "interposer/interned_strings.h"

#include <string.h>

#include "interposer/growing_index.h"
#include "interposer/profile_file.h"

namespace cadastre {
namespace {

GrowingIndex g_index;
constexpr uint64_t kUsualUnits = 4;  // of a string: header and 17 to 24 bytes; most names are longer

// FNV-1a, its bits mixed: the index uses both ends.
uint64_t HashText(const char* text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < length; i++) hash = (hash ^ static_cast<uint8_t>(text[i])) * 0x100000001b3ull;
  hash ^= hash >> 32;
  hash *= 0xff51afd7ed558ccdull;
  return hash ^ (hash >> 33);
}

struct HasText {
  const char* text;
  size_t length;
  bool operator()(uint32_t string) const {
    const auto* header = reinterpret_cast<const format::StringHeader*>(g_profile.strings + string);
    return header->length == length && memcmp(header + 1, text, length) == 0;
  }
};

}  // namespace

bool InternedStringsInit(uint64_t string_units) { return g_index.Init(string_units / kUsualUnits); }

uint32_t FindInternedString(const char* text, size_t length) {
  return g_index.Find(HashText(text, length), HasText{text, length});
}

uint32_t InternString(const char* text, size_t length) {
  return g_index.FindOrAdd(HashText(text, length), HasText{text, length},
                           [&] { return ProfileAddString(text, length); });
}

}  // namespace cadastre
