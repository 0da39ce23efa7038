// How any row of interposer/optional_entries.def is called: by its shape, and for what follows the size by its name.
#ifndef CADASTRE_TESTS_PRELOAD_ENTRIES_ROWS_H_
#define CADASTRE_TESTS_PRELOAD_ENTRIES_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

enum class RowShape {
  Allocate,
  AllocateSecond,
  AllocateArray,
  HeapAllocateArray,
  PosixMemalign,
  Reallocate,
  ReallocateOrKeep,
  ReallocateOrFree,
  ReallocateArray,
  ReallocateArrayOut,
  HeapReallocate,
  HeapReallocateOrFree,
  HeapReallocateArray,
  Resize,
  CopyText,
  CopyPath,
  HeapCopyPath,
  CopyWideText,
  CopyTextOut,
  Free,
  FreeHeap,
  UsableSize,
};
enum class RowFamily { Provider, Je, Tc, Mi };

using RowFunction = uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

struct RowCall {
  uint64_t arguments[6];
};

inline bool RowHas(const char* name, const char* part) { return strstr(name, part) != nullptr; }
constexpr uint64_t kRowAlignment = 64;

inline bool RowIsAligned(const char* name) { return RowHas(name, "align"); }
inline bool RowIsHeap(const char* name) { return strncmp(name, "mi_heap_", 8) == 0; }

// What stands behind the sizes: an alignment and an offset of 0, the tag of a nothrow form, or flags of 0.
inline void RowTail(const char* name, const void* tag, uint64_t* arguments, int at) {
  if (RowIsAligned(name)) arguments[at++] = kRowAlignment;
  const bool nothrow = RowHas(name, "nothrow") && strncmp(name, "mi_", 3) != 0;  // mimalloc's have no such argument
  arguments[at] = nothrow ? reinterpret_cast<uint64_t>(tag) : 0;
}

// The arguments with which the row makes, changes or releases a block of `bytes`. `block`: what is to be changed or
// released; `place`: where functions that store an address find and put it; `text` has bytes - 1 characters, `wide`
// half as many.
inline RowCall ArgumentsOfRow(RowShape shape, const char* name, uint64_t heap, void* block, void** place,
                              uint64_t bytes, const char* text, const void* wide, const void* tag) {
  RowCall call = {};
  uint64_t* a = call.arguments;
  const auto address = reinterpret_cast<uint64_t>(block);
  int next = 0;
  if (RowIsHeap(name)) a[next++] = heap;
  switch (shape) {
    case RowShape::Allocate:
    case RowShape::AllocateArray:
    case RowShape::HeapAllocateArray:
    case RowShape::AllocateSecond:
      if (shape == RowShape::AllocateSecond && !RowIsHeap(name)) {  // memalign, aligned_alloc
        a[next++] = kRowAlignment;
        a[next] = bytes;
        break;
      }
      if (shape == RowShape::AllocateArray || shape == RowShape::HeapAllocateArray) {
        a[next++] = bytes / 8;
        a[next++] = 8;
      } else {
        a[next++] = bytes;
      }
      RowTail(name, tag, a, next);
      break;
    case RowShape::PosixMemalign:
      a[0] = reinterpret_cast<uint64_t>(place);
      a[1] = kRowAlignment;
      a[2] = bytes;
      break;
    case RowShape::Reallocate:
    case RowShape::ReallocateOrKeep:
    case RowShape::ReallocateOrFree:
    case RowShape::HeapReallocate:
    case RowShape::HeapReallocateOrFree:
      a[next++] = address;
      a[next++] = bytes;
      RowTail(name, tag, a, next);
      break;
    case RowShape::ReallocateArray:
    case RowShape::HeapReallocateArray:
      a[next++] = address;
      a[next++] = bytes / 8;
      a[next++] = 8;
      RowTail(name, tag, a, next);
      break;
    case RowShape::ReallocateArrayOut:
      *place = block;
      a[0] = reinterpret_cast<uint64_t>(place);
      a[1] = bytes / 8;
      a[2] = 8;
      break;
    case RowShape::Resize:
      a[0] = address;
      a[1] = bytes;
      break;
    case RowShape::CopyText:
    case RowShape::CopyPath:
    case RowShape::HeapCopyPath:
      a[next++] = reinterpret_cast<uint64_t>(text);
      if (RowHas(name, "strndup")) a[next] = bytes;
      break;
    case RowShape::CopyWideText:
      a[0] = reinterpret_cast<uint64_t>(wide);
      break;
    case RowShape::CopyTextOut:
      a[0] = reinterpret_cast<uint64_t>(place);
      a[2] = reinterpret_cast<uint64_t>("CADASTRE_TEST_TEXT");
      break;
    case RowShape::Free: {
      a[next++] = address;
      // free_aligned_sized(block, alignment, size); everybody else's size comes first.
      const bool alignment_first = RowHas(name, "free_aligned_sized");
      if (alignment_first) a[next++] = kRowAlignment;
      const bool sized = RowHas(name, "size") || RowHas(name, "sdallocx") || RowHas(name, "Pvm");
      if (sized) a[next++] = bytes;
      if (!alignment_first) RowTail(name, tag, a, next);
      break;
    }
    case RowShape::FreeHeap:
    case RowShape::UsableSize:
      a[0] = RowIsHeap(name) ? heap : address;
      break;
  }
  return call;
}

#endif  // CADASTRE_TESTS_PRELOAD_ENTRIES_ROWS_H_
