// The profile as stack capture sees it, without a file: closed unless a test opens it on memory of its own.
#include <string.h>

#include <atomic>

#include "interposer/profile_file.h"
#include "interposer/thread_buffer.h"

namespace cadastre {

ProfileView g_profile;

bool IsSandboxed() { return false; }
bool ProfileIsOpen() { return g_profile.header != nullptr; }
bool ProfileEnsure(const void*, size_t) { return true; }
uint32_t ProfileAddString(const char* bytes, size_t length) {
  static std::atomic<uint32_t> next = 1;
  if (length == 0) return 0;
  const uint64_t units = 1 + (length + 7) / 8;
  const uint32_t index = next.fetch_add(static_cast<uint32_t>(units));
  if (index + units > g_profile.string_units) return 0;
  auto* header = reinterpret_cast<format::StringHeader*>(g_profile.strings + index);
  header->length = static_cast<uint32_t>(length);
  header->check = format::StringCheck(bytes, length);
  memcpy(header + 1, bytes, length);
  return index;
}

}  // namespace cadastre
