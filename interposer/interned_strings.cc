#include "interposer/interned_strings.h"

#include "interposer/profile_file.h"
#include "interposer/word_cache.h"

namespace cadastre {
namespace {

WordCache g_strings;  // hash of the text -> its string

// FNV-1a, mixed with the length; neither 0 nor ~0, which are no keys.
uint64_t HashText(const char* text, size_t length) {
  uint64_t hash = 0xcbf29ce484222325ull;
  for (size_t i = 0; i < length; i++) hash = (hash ^ static_cast<uint8_t>(text[i])) * 0x100000001b3ull;
  hash = (hash ^ (length * 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;
  hash ^= hash >> 32;
  return hash == 0 || hash == ~0ull ? 1 : hash;
}

uint32_t Find(uint64_t hash) {
  CachedWords words;
  return g_strings.Find(hash, &words) ? static_cast<uint32_t>(words.first) : 0;
}

}  // namespace

uint32_t FindInternedString(const char* text, size_t length) { return Find(HashText(text, length)); }

uint32_t InternString(const char* text, size_t length) {
  const uint64_t hash = HashText(text, length);
  if (const uint32_t known = Find(hash); known != 0) return known;
  const uint32_t string = ProfileAddString(text, length);
  if (string == 0) return 0;
  // Another thread may have brought the same text meanwhile: one of the two strings is used by both.
  if (Find(hash) == 0) g_strings.Insert(hash, {string, 0, 0});
  const uint32_t agreed = Find(hash);
  return agreed != 0 ? agreed : string;
}

}  // namespace cadastre
