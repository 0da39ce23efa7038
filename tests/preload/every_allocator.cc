// An allocator that has every entry point of interposer/optional_entries.def: libc's malloc under all those names, made
// by the table and the shapes in it. For the names that no packaged allocator has (the BSDs', macOS's, C23's, other
// versions').
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/preload/entries_rows.h"

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

// The size stands in front of the block, on a cache line of its own, so that usable size needs no libc.
constexpr size_t kFront = 64;
void* Make(size_t bytes, size_t alignment = kRowAlignment) {
  if (alignment < kFront) alignment = kFront;
  if (bytes > SIZE_MAX / 2) {
    errno = ENOMEM;
    return nullptr;
  }
  char* whole = static_cast<char*>(__libc_memalign(alignment, bytes + alignment));
  if (whole == nullptr) return nullptr;
  char* block = whole + alignment;
  reinterpret_cast<size_t*>(block)[-1] = bytes;
  reinterpret_cast<void**>(block)[-2] = whole;
  return block;
}
size_t SizeOf(const void* block) { return block != nullptr ? static_cast<const size_t*>(block)[-1] : 0; }
void Release(void* block) {
  if (block != nullptr) __libc_free(static_cast<void**>(block)[-2]);
}
void* Change(void* block, size_t bytes) {
  void* changed = Make(bytes);
  if (changed == nullptr || block == nullptr) return changed;
  const size_t old = SizeOf(block);
  memcpy(changed, block, old < bytes ? old : bytes);
  Release(block);
  return changed;
}
uint64_t Copy(const char* text, size_t length) {
  char* copy = static_cast<char*>(Make(length + 1));
  memcpy(copy, text, length);
  copy[length] = '\0';
  return reinterpret_cast<uint64_t>(copy);
}

// The other way round from ArgumentsOfRow.
uint64_t Serve(RowShape shape, const char* name, const uint64_t* a) {
  if (RowIsHeap(name)) a++;
  auto* block = reinterpret_cast<void*>(a[0]);
  auto result = [](void* made) { return reinterpret_cast<uint64_t>(made); };
  switch (shape) {
    case RowShape::Allocate:
      return result(Make(a[0]));
    case RowShape::AllocateSecond:
      return result(Make(RowIsHeap(name) ? a[0] : a[1]));
    case RowShape::AllocateArray:
    case RowShape::HeapAllocateArray:
      return result(Make(a[0] * a[1]));
    case RowShape::PosixMemalign:
      *reinterpret_cast<void**>(a[0]) = Make(a[2]);
      return 0;
    case RowShape::Reallocate:
    case RowShape::ReallocateOrKeep:
    case RowShape::ReallocateOrFree:
    case RowShape::HeapReallocate:
    case RowShape::HeapReallocateOrFree:
      return result(Change(block, a[1]));
    case RowShape::ReallocateArray:
    case RowShape::HeapReallocateArray:
      return result(Change(block, a[1] * a[2]));
    case RowShape::ReallocateArrayOut: {
      auto** place = reinterpret_cast<void**>(a[0]);
      *place = Change(*place, a[1] * a[2]);
      return 0;
    }
    case RowShape::Resize:
      return SizeOf(block);
    case RowShape::CopyText: {
      const auto* text = reinterpret_cast<const char*>(a[0]);
      return Copy(text, RowHas(name, "strndup") ? strnlen(text, a[1]) : strlen(text));
    }
    case RowShape::CopyPath:
    case RowShape::HeapCopyPath:
      return Copy("/usr", 4);
    case RowShape::CopyWideText: {
      const auto* text = reinterpret_cast<const uint16_t*>(a[0]);
      size_t units = 0;
      while (text[units] != 0) units++;
      void* copy = Make(2 * units + 2);
      memcpy(copy, text, 2 * units + 2);
      return result(copy);
    }
    case RowShape::CopyTextOut: {
      const char* text = getenv(reinterpret_cast<const char*>(a[2]));
      *reinterpret_cast<uint64_t*>(a[0]) = text != nullptr ? Copy(text, strlen(text)) : 0;
      return 0;
    }
    case RowShape::Free:
      Release(block);
      return 0;
    case RowShape::FreeHeap:
      return 0;
    case RowShape::UsableSize:
      return SizeOf(block);
  }
  return 0;
}

}  // namespace

#define EVERY extern "C" __attribute__((visibility("default")))
EVERY void* malloc(size_t bytes) { return Make(bytes); }
EVERY void free(void* block) { Release(block); }
EVERY void* calloc(size_t count, size_t bytes) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  void* block = Make(all);
  return block != nullptr ? memset(block, 0, all) : nullptr;
}
EVERY void* realloc(void* block, size_t bytes) {
  if (bytes != 0 || block == nullptr) return Change(block, bytes);
  Release(block);
  return nullptr;
}
EVERY void* reallocarray(void* block, size_t count, size_t bytes) { return realloc(block, count * bytes); }
EVERY void* memalign(size_t alignment, size_t bytes) { return Make(bytes, alignment); }
EVERY void* aligned_alloc(size_t alignment, size_t bytes) { return Make(bytes, alignment); }
EVERY int posix_memalign(void** place, size_t alignment, size_t bytes) {
  *place = Make(bytes, alignment);
  return *place != nullptr ? 0 : ENOMEM;
}
EVERY void* valloc(size_t bytes) { return Make(bytes, 4096); }
EVERY void* pvalloc(size_t bytes) { return Make((bytes + 4095) & ~size_t{4095}, 4096); }
EVERY size_t malloc_usable_size(void* block) { return SizeOf(block); }
EVERY void* mi_heap_get_default() {
  static char heap;
  return &heap;
}
#define CADASTRE_ENTRY(family, shape, name)                                                     \
  EVERY uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) { \
    const uint64_t arguments[] = {a, b, c, d, e, f};                                            \
    return Serve(RowShape::shape, #name, arguments);                                            \
  }
#include "interposer/optional_entries.def"
