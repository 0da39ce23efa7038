// What an allocator's entry point does, and where its size and its block stand among its arguments: enough for one hook
// body to serve all functions of a shape (hooks_optional.cc). Plain constants; the names are those of
// optional_entries.def.
#ifndef CADASTRE_INTERPOSER_ENTRY_SHAPE_H_
#define CADASTRE_INTERPOSER_ENTRY_SHAPE_H_

#include <stddef.h>
#include <stdint.h>

namespace cadastre {

enum class EntryAction : uint8_t {
  kAllocate,       // returns the new block
  kAllocateOut,    // stores it where the first argument points to; returns 0, or an error
  kReallocate,     // returns the block's new address
  kReallocateOut,  // the first argument points to the block's address; returns 0, or an error
  kResize,         // the block stays where it is; returns its real size
  kCopyText,       // returns a new, terminated text, or the place for it that argument[block] is (block 0: never)
  kCopyWideText,   // returns a new text of 16-bit units that ends with 0
  kCopyTextOut,    // stores a new text, or null, where the first argument points to; returns 0, or an error
  kFree,
  kFreeHeap,  // releases all blocks of a heap at once
  kUsableSize,
};

// What became of the old block where a reallocation returned null.
enum class NullMeans : uint8_t {
  kKept,               // it failed
  kFreedIfSizeIsZero,  // realloc(p, 0) of the C library is a free
  kFreed,              // reallocf
};

struct EntryShape {
  EntryAction action;
  uint8_t block = 0;      // index of the argument that is a block
  uint8_t size = 0;       // of the size in bytes, or of the count
  bool is_array = false;  // the size is argument[size] * argument[size + 1]
  NullMeans null_means = NullMeans::kKept;
};

inline constexpr EntryShape kShapeAllocate = {.action = EntryAction::kAllocate};                   // f(size, ...)
inline constexpr EntryShape kShapeAllocateSecond = {.action = EntryAction::kAllocate, .size = 1};  // f(x, size, ...)
inline constexpr EntryShape kShapeAllocateArray = {.action = EntryAction::kAllocate, .is_array = true};
inline constexpr EntryShape kShapeHeapAllocateArray = {
    .action = EntryAction::kAllocate, .size = 1, .is_array = true};  // f(heap, count, size, ...)
inline constexpr EntryShape kShapePosixMemalign = {.action = EntryAction::kAllocateOut, .size = 2};

inline constexpr EntryShape kShapeReallocate = {
    .action = EntryAction::kReallocate, .size = 1, .null_means = NullMeans::kFreedIfSizeIsZero};
inline constexpr EntryShape kShapeReallocateOrKeep = {.action = EntryAction::kReallocate, .size = 1};
inline constexpr EntryShape kShapeReallocateOrFree = {
    .action = EntryAction::kReallocate, .size = 1, .null_means = NullMeans::kFreed};
inline constexpr EntryShape kShapeReallocateArray = {
    .action = EntryAction::kReallocate, .size = 1, .is_array = true};  // f(block, count, size, ...)
inline constexpr EntryShape kShapeReallocateArrayOut = {
    .action = EntryAction::kReallocateOut, .size = 1, .is_array = true, .null_means = NullMeans::kFreedIfSizeIsZero};
inline constexpr EntryShape kShapeHeapReallocate = {.action = EntryAction::kReallocate, .block = 1, .size = 2};
inline constexpr EntryShape kShapeHeapReallocateOrFree = {
    .action = EntryAction::kReallocate, .block = 1, .size = 2, .null_means = NullMeans::kFreed};
inline constexpr EntryShape kShapeHeapReallocateArray = {
    .action = EntryAction::kReallocate, .block = 1, .size = 2, .is_array = true};

inline constexpr EntryShape kShapeResize = {.action = EntryAction::kResize, .size = 1};
inline constexpr EntryShape kShapeCopyText = {.action = EntryAction::kCopyText};
inline constexpr EntryShape kShapeCopyPath = {.action = EntryAction::kCopyText, .block = 1};  // f(path, place)
inline constexpr EntryShape kShapeHeapCopyPath = {.action = EntryAction::kCopyText,
                                                  .block = 2};  // f(heap, path, place)
inline constexpr EntryShape kShapeCopyWideText = {.action = EntryAction::kCopyWideText};
inline constexpr EntryShape kShapeCopyTextOut = {.action = EntryAction::kCopyTextOut};
inline constexpr EntryShape kShapeFree = {.action = EntryAction::kFree};
inline constexpr EntryShape kShapeFreeHeap = {.action = EntryAction::kFreeHeap};
inline constexpr EntryShape kShapeUsableSize = {.action = EntryAction::kUsableSize};

// False: no size can be that large (and the function will say so itself).
inline __attribute__((always_inline)) bool EntryBytes(const EntryShape& shape, const uint64_t* arguments,
                                                      size_t* bytes) {
  *bytes = arguments[shape.size];
  return !shape.is_array || !__builtin_mul_overflow(*bytes, arguments[shape.size + 1], bytes);
}

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_ENTRY_SHAPE_H_
