// Calls each row of interposer/optional_entries.def that is there, as its shape says, and says what a right profile
// shows (lines ALLOC). The table itself makes the calls, so none is forgotten; whether a row's shape is right,
// entries_target.cc and the real allocators say: here a wrong one shows where it leads to a wrong size or a crash.
#include "tests/preload/entries_rows.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <new>

#define WEAK __attribute__((weak))
#define NOINLINE __attribute__((noinline))

extern "C" {
#define CADASTRE_ENTRY(family, shape, name) \
  uint64_t name(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) WEAK;
#include "interposer/optional_entries.def"
#undef CADASTRE_ENTRY
void* mi_heap_new() WEAK;
void* mi_heap_get_default() WEAK;
}

namespace {

constexpr int kMade = 6;
uint64_t heap;
char text[4096];
char wide[8192];
void* place;
void* kept[4096];
int kept_count;
const std::nothrow_t tag;

// What makes and releases blocks of a family in every allocator. Never a row of the test's own turn.
void* Make(RowFamily family, uint64_t bytes) {
  switch (family) {
    case RowFamily::Je:
      return reinterpret_cast<void*>(je_aligned_alloc(kRowAlignment, bytes, 0, 0, 0, 0));
    case RowFamily::Tc:
      return reinterpret_cast<void*>(tc_memalign(kRowAlignment, bytes, 0, 0, 0, 0));
    case RowFamily::Mi:
      return reinterpret_cast<void*>(mi_malloc_aligned(bytes, kRowAlignment, 0, 0, 0, 0));
    case RowFamily::Provider:
      break;
  }
  return aligned_alloc(kRowAlignment, bytes);
}
void Release(RowFamily family, void* block) {
  const auto address = reinterpret_cast<uint64_t>(block);
  if (family == RowFamily::Je) je_free(address, 0, 0, 0, 0, 0);
  if (family == RowFamily::Tc) tc_free(address, 0, 0, 0, 0, 0);
  if (family == RowFamily::Mi) mi_free(address, 0, 0, 0, 0, 0);
  if (family == RowFamily::Provider) free(block);
}

enum class Kind { kMakes, kChanges, kReleases, kAsks };
Kind KindOf(RowShape shape) {
  switch (shape) {
    case RowShape::Free:
      return Kind::kReleases;
    case RowShape::UsableSize:
      return Kind::kAsks;
    case RowShape::Reallocate:
    case RowShape::ReallocateOrKeep:
    case RowShape::ReallocateOrFree:
    case RowShape::ReallocateArray:
    case RowShape::ReallocateArrayOut:
    case RowShape::HeapReallocate:
    case RowShape::HeapReallocateOrFree:
    case RowShape::HeapReallocateArray:
    case RowShape::Resize:
      return Kind::kChanges;
    default:
      return Kind::kMakes;
  }
}
bool IsText(RowShape shape) {
  return shape == RowShape::CopyText || shape == RowShape::CopyPath || shape == RowShape::HeapCopyPath ||
         shape == RowShape::CopyWideText || shape == RowShape::CopyTextOut;
}

struct Row {
  const char* name;
  RowFamily family;
  RowShape shape;
  RowFunction function;
  uint64_t (*call)(const RowCall&);
  void* (*made_for)(uint64_t);
};

// A block of as many bytes for a path: of one that is there, with "/./" in it, which realpath takes out again.
uint64_t PrepareText(RowShape shape, uint64_t bytes) {
  if (shape == RowShape::CopyPath || shape == RowShape::HeapCopyPath) {
    strcpy(text, "/./tmp/../usr");
    return sizeof("/usr");
  }
  memset(text, 't', bytes - 1);
  text[bytes - 1] = '\0';
  memset(wide, 'w', bytes - 2);
  wide[bytes - 2] = wide[bytes - 1] = '\0';
  setenv("CADASTRE_TEST_TEXT", text, 1);
  return bytes;
}

void Drive(const Row& row) {
  const bool there = row.function != nullptr;
  printf("%s is %s\n", row.name, there ? "there" : "missing");
  if (!there) return;
  const Kind kind = KindOf(row.shape);
  uint64_t bytes = 0, live_bytes = 0, made_bytes = 0;
  int live = 0;
  for (int i = 0; i < kMade; i++) {
    uint64_t size = 192 + 64 * static_cast<uint64_t>(i % 3);
    if (IsText(row.shape)) size = PrepareText(row.shape, size);
    void* block = kind == Kind::kMakes ? nullptr : row.made_for(size);
    if (block != nullptr) made_bytes += size;
    place = nullptr;
    const uint64_t result = row.call(ArgumentsOfRow(row.shape, row.name, heap, block, &place, size, text, wide, &tag));
    if (kind == Kind::kReleases) continue;
    if (kind == Kind::kAsks) {
      if (result < size)
        printf("FAIL %s says %zu of %zu\n", row.name, static_cast<size_t>(result), static_cast<size_t>(size));
      Release(row.family, block);
      continue;
    }
    void* now = reinterpret_cast<void*>(result);
    if (place != nullptr) now = static_cast<int>(result) == 0 ? place : nullptr;
    if (row.shape == RowShape::Resize) now = block;
    if (now == nullptr) {
      printf("FAIL %s gives nothing\n", row.name);
      continue;
    }
    if (!IsText(row.shape)) memset(now, 1, size);
    bytes += size;
    if (i % 2 == 0) {
      Release(row.family, now);
      continue;
    }
    kept[kept_count++] = now;
    live++;
    live_bytes += size;
  }
  // mimalloc's realpath has libc make a text first, and frees that.
  const bool is_path = row.shape == RowShape::CopyPath || row.shape == RowShape::HeapCopyPath;
  if (is_path) printf("ALLOC site_row_%s live=%d livebytes=%zu\n", row.name, live, static_cast<size_t>(live_bytes));
  if (!is_path && (kind == Kind::kMakes || kind == Kind::kChanges))
    printf("ALLOC site_row_%s count=%d bytes=%zu live=%d livebytes=%zu\n", row.name, kMade, static_cast<size_t>(bytes),
           live, static_cast<size_t>(live_bytes));
  if (kind != Kind::kMakes)
    printf("ALLOC site_made_for_%s count=%d bytes=%zu live=0\n", row.name, kMade, static_cast<size_t>(made_bytes));
}

}  // namespace

#define CADASTRE_ENTRY(family, shape, name)                              \
  NOINLINE static uint64_t site_row_##name(const RowCall& call) {        \
    const uint64_t* a = call.arguments;                                  \
    volatile uint64_t result = name(a[0], a[1], a[2], a[3], a[4], a[5]); \
    return result;                                                       \
  }                                                                      \
  NOINLINE static void* site_made_for_##name(uint64_t bytes) {           \
    void* volatile block = Make(RowFamily::family, bytes);               \
    return block;                                                        \
  }
#include "interposer/optional_entries.def"
#undef CADASTRE_ENTRY

int main() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (mi_heap_get_default != nullptr) heap = reinterpret_cast<uint64_t>(mi_heap_get_default());
    // FreeHeap: entries_target.cc has a heap to destroy. cfree: glibc's is for old binaries, and may be found here
    // without being the allocator's.
#define CADASTRE_ENTRY(family, shape, name)                                 \
  if (RowShape::shape != RowShape::FreeHeap && strcmp(#name, "cfree") != 0) \
    Drive({#name, RowFamily::family, RowShape::shape, name, site_row_##name, site_made_for_##name});
#include "interposer/optional_entries.def"
#undef CADASTRE_ENTRY
  printf("%d blocks are kept\n", kept_count);
  return 0;
}
