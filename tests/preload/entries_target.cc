// Calls every allocation entry point that is there, as programs do that look for an allocator: by a weak reference that
// is tested. Says what is there, what came back, and (lines ALLOC) what a right profile shows. The same bare and under
// the preload.
//
// Each site makes 12 blocks, gives them back in turn by every form that is legal for them, and keeps those whose turn
// was "keep".
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <iterator>

#include <dlfcn.h>
#include <malloc.h>

#define WEAK __attribute__((weak))
#define NOINLINE __attribute__((noinline))
using Size = size_t;

extern "C" {
// C23, BSD
void free_sized(void*, Size) WEAK;
void free_aligned_sized(void*, Size, Size) WEAK;
void* reallocf(void*, Size) WEAK;
int reallocarr(void*, Size, Size) WEAK;
void vfree(void*) WEAK;
// jemalloc
void* mallocx(Size, int) WEAK;
void* rallocx(void*, Size, int) WEAK;
Size xallocx(void*, Size, Size, int) WEAK;
Size sallocx(const void*, int) WEAK;
Size nallocx(Size, int) WEAK;
void dallocx(void*, int) WEAK;
void sdallocx(void*, Size, int) WEAK;
// A jemalloc with a prefix, beside libc's malloc
void* je_malloc(Size) WEAK;
void* je_calloc(Size, Size) WEAK;
void* je_realloc(void*, Size) WEAK;
void* je_aligned_alloc(Size, Size) WEAK;
int je_posix_memalign(void**, Size, Size) WEAK;
void* je_mallocx(Size, int) WEAK;
void* je_rallocx(void*, Size, int) WEAK;
Size je_malloc_usable_size(void*) WEAK;
void je_free(void*) WEAK;
void je_dallocx(void*, int) WEAK;
void je_sdallocx(void*, Size, int) WEAK;
// tcmalloc
void* tc_malloc(Size) WEAK;
void* tc_malloc_skip_new_handler(Size) WEAK;
void* tc_calloc(Size, Size) WEAK;
void* tc_realloc(void*, Size) WEAK;
void* tc_memalign(Size, Size) WEAK;
int tc_posix_memalign(void**, Size, Size) WEAK;
void* tc_valloc(Size) WEAK;
void* tc_pvalloc(Size) WEAK;
Size tc_malloc_size(void*) WEAK;
void* tc_new(Size) WEAK;
void* tc_newarray_nothrow(Size, const void*) WEAK;
void* tc_new_aligned(Size, Size) WEAK;
void tc_free(void*) WEAK;
void tc_cfree(void*) WEAK;
void tc_free_sized(void*, Size) WEAK;
void tc_delete(void*) WEAK;
void tc_delete_sized(void*, Size) WEAK;
void tc_deletearray(void*) WEAK;
void tc_delete_aligned(void*, Size) WEAK;
// mimalloc
void* mi_malloc(Size) WEAK;
void* mi_malloc_small(Size) WEAK;
void* mi_zalloc(Size) WEAK;
void* mi_calloc(Size, Size) WEAK;
void* mi_mallocn(Size, Size) WEAK;
void* mi_malloc_aligned(Size, Size) WEAK;
void* mi_malloc_aligned_at(Size, Size, Size) WEAK;
void* mi_calloc_aligned(Size, Size, Size) WEAK;
int mi_posix_memalign(void**, Size, Size) WEAK;
void* mi_memalign(Size, Size) WEAK;
void* mi_aligned_alloc(Size, Size) WEAK;
void* mi_valloc(Size) WEAK;
void* mi_new(Size) WEAK;
void* mi_new_n(Size, Size) WEAK;
void* mi_realloc(void*, Size) WEAK;
void* mi_reallocf(void*, Size) WEAK;
void* mi_reallocn(void*, Size, Size) WEAK;
void* mi_rezalloc(void*, Size) WEAK;
void* mi_recalloc(void*, Size, Size) WEAK;
void* mi_realloc_aligned(void*, Size, Size) WEAK;
int mi_reallocarr(void*, Size, Size) WEAK;
void* mi_expand(void*, Size) WEAK;
char* mi_strdup(const char*) WEAK;
char* mi_strndup(const char*, Size) WEAK;
Size mi_usable_size(const void*) WEAK;
void mi_free(void*) WEAK;
void mi_free_size(void*, Size) WEAK;
void mi_free_aligned(void*, Size) WEAK;
void mi_free_size_aligned(void*, Size, Size) WEAK;
void mi_cfree(void*) WEAK;
void* mi_heap_new() WEAK;
void mi_heap_destroy(void*) WEAK;
void mi_heap_delete(void*) WEAK;
void* mi_heap_malloc(void*, Size) WEAK;
void* mi_heap_zalloc(void*, Size) WEAK;
void* mi_heap_calloc(void*, Size, Size) WEAK;
void* mi_heap_malloc_aligned(void*, Size, Size) WEAK;
void* mi_heap_calloc_aligned_at(void*, Size, Size, Size, Size) WEAK;
void* mi_heap_realloc(void*, void*, Size) WEAK;
void* mi_heap_recalloc_aligned_at(void*, void*, Size, Size, Size, Size) WEAK;
char* mi_heap_strdup(void*, const char*) WEAK;
// What a binary of before glibc 2.26 asks for.
void old_cfree(void*);
}
asm(".symver old_cfree, cfree@GLIBC_2.2.5");

namespace {

constexpr int kMade = 12;
constexpr Size kStart = 48;  // of the blocks that a reallocation starts from
constexpr Size kSameSize = ~Size{0};
void* heap;
void* kept[4096];  // what stays live can be reached, and is not optimised away
int kept_count;

Size (*usable_size)(void*) = malloc_usable_size;

struct Release {
  bool there;
  void (*release)(void*, Size);
};
#define RELEASE(name, call)                \
  {                                        \
    name != nullptr, [](void* p, Size n) { \
      (void)n;                             \
      call;                                \
    }                                      \
  }
const Release kCForms[] = {
    {true, [](void* p, Size) { free(p); }},
    RELEASE(free_sized, free_sized(p, n)),
    RELEASE(vfree, vfree(p)),
    // jemalloc has no cfree: with it, this would be libc's.
    {mallocx == nullptr, [](void* p, Size) { old_cfree(p); }},
    {true, [](void* p, Size) { free(realloc(p, 3000)); }},
    RELEASE(dallocx, dallocx(p, 0)),
    RELEASE(sdallocx, sdallocx(p, n, 0)),
    RELEASE(tc_free, tc_free(p)),
    RELEASE(tc_cfree, tc_cfree(p)),
    RELEASE(tc_free_sized, tc_free_sized(p, n)),
    RELEASE(mi_free, mi_free(p)),
    RELEASE(mi_cfree, mi_cfree(p)),
    RELEASE(mi_free_size, mi_free_size(p, n)),
    {true, nullptr},  // keep
};
const Release kAlignedForms[] = {
    {true, [](void* p, Size) { free(p); }},
    RELEASE(free_aligned_sized, free_aligned_sized(p, 64, n)),
    RELEASE(dallocx, dallocx(p, 0)),
    RELEASE(tc_free, tc_free(p)),
    RELEASE(mi_free_aligned, mi_free_aligned(p, 64)),
    RELEASE(mi_free_size_aligned, mi_free_size_aligned(p, n, 64)),
    {true, nullptr},
};
const Release kNewForms[] = {
    RELEASE(tc_delete, tc_delete(p)),
    RELEASE(tc_delete_sized, tc_delete_sized(p, n)),
    RELEASE(tc_deletearray, tc_deletearray(p)),
    {true, [](void* p, Size) { operator delete(p); }},
    {true, [](void* p, Size n) { operator delete[](p, n); }},
    {true, nullptr},
};

const Release kJeForms[] = {
    RELEASE(je_free, je_free(p)),
    RELEASE(je_dallocx, je_dallocx(p, 0)),
    RELEASE(je_sdallocx, je_sdallocx(p, n, 0)),
    {true, [](void* p, Size) { je_free(je_realloc(p, 3000)); }},
    {true, nullptr},
};

// extra_*: what a call allocates besides what stays: kStart for what a reallocation starts from.
template <int kForms>
void Drive(const char* name, bool there, void* (*make)(Size), Size alignment, const Release (&forms)[kForms],
           Size extra_bytes = 0, int extra_count = 0) {
  printf("%s is %s\n", name, there ? "there" : "missing");
  if (!there) return;
  Size bytes = 0, live_bytes = 0;
  int live = 0, turn = 0;
  for (int i = 0; i < kMade; i++) {
    const Size size = 200 + 16 * static_cast<Size>(i % 5);
    char* block = static_cast<char*>(make(size));
    if (block == nullptr || reinterpret_cast<uintptr_t>(block) % alignment != 0 || usable_size(block) < size)
      printf("FAIL %s(%zu): %p\n", name, size, static_cast<void*>(block));
    memset(block, 1, size);
    bytes += size + (extra_bytes == kSameSize ? size : extra_bytes);
    while (!forms[turn % kForms].there) turn++;
    const Release& form = forms[turn++ % kForms];
    if (form.release != nullptr) {
      form.release(block, size);
      continue;
    }
    kept[kept_count++] = block;
    live++;
    live_bytes += size;
  }
  printf("ALLOC site_%s count=%d bytes=%zu live=%d livebytes=%zu\n", name, kMade * (1 + extra_count), bytes, live,
         live_bytes);
}

template <typename Function>
void* Out(Function function, Size alignment, Size size) {
  void* block = nullptr;
  return function(&block, alignment, size) == 0 ? block : nullptr;
}
void* InPlace(int (*function)(void*, Size, Size), void* block, Size count, Size size) {
  return function(&block, count, size) == 0 ? block : nullptr;
}
char text[4096];
const char* Text(Size bytes) {
  memset(text, 't', sizeof(text));
  text[bytes - 1] = '\0';
  return text;
}
const wchar_t* WideText(Size bytes) {
  static wchar_t wide[1024];
  wmemset(wide, L'w', 1024);
  wide[bytes / sizeof(wchar_t) - 1] = L'\0';
  return wide;
}

}  // namespace

#define SITE(name, call) \
  NOINLINE static void* site_##name(Size n) { return reinterpret_cast<void*>(call); }
SITE(malloc, malloc(n))
SITE(calloc, calloc(n / 8, 8))
SITE(realloc, realloc(malloc(kStart), n))
SITE(reallocarray, reallocarray(malloc(kStart), n / 8, 8))
SITE(aligned_alloc, aligned_alloc(64, n))
SITE(memalign, memalign(64, n))
SITE(posix_memalign, Out(posix_memalign, 64, n))
SITE(valloc, valloc(n))
SITE(reallocf, reallocf(malloc(kStart), n))
SITE(reallocarr, InPlace(reallocarr, malloc(kStart), n / 8, 8))
SITE(strdup, strdup(Text(n)))
SITE(strndup, strndup(Text(n + 10), n - 1))
SITE(wcsdup, wcsdup(WideText(n)))
SITE(new, operator new(n))
SITE(mallocx, mallocx(n, 0))
SITE(mallocx_aligned, mallocx(n, 6))  // MALLOCX_LG_ALIGN(6)
SITE(rallocx, rallocx(malloc(kStart), n, 0))
NOINLINE static void* site_xallocx(Size n) {
  void* block = mallocx(n, 0);
  return xallocx(block, n, 0, 0) >= n ? block : nullptr;
}
NOINLINE static void* site_xallocx_refused(Size n) {
  void* block = mallocx(n, 0);
  return xallocx(block, 100000000, 0, 0) < 100000000 ? block : nullptr;
}
SITE(je_malloc, je_malloc(n))
SITE(je_calloc, je_calloc(n / 8, 8))
SITE(je_realloc, je_realloc(je_malloc(kStart), n))
SITE(je_aligned_alloc, je_aligned_alloc(64, n))
SITE(je_posix_memalign, Out(je_posix_memalign, 64, n))
SITE(je_mallocx, je_mallocx(n, 0))
SITE(je_rallocx, je_rallocx(je_mallocx(kStart, 0), n, 0))
SITE(tc_malloc, tc_malloc(n))
SITE(tc_malloc_skip_new_handler, tc_malloc_skip_new_handler(n))
SITE(tc_calloc, tc_calloc(n / 8, 8))
SITE(tc_realloc, tc_realloc(tc_malloc(kStart), n))
SITE(tc_memalign, tc_memalign(64, n))
SITE(tc_posix_memalign, Out(tc_posix_memalign, 64, n))
SITE(tc_valloc, tc_valloc(n))
SITE(tc_pvalloc, tc_pvalloc(n))
SITE(tc_new, tc_new(n))
SITE(tc_newarray_nothrow, tc_newarray_nothrow(n, nullptr))
SITE(tc_new_aligned, tc_new_aligned(n, 64))
SITE(mi_malloc, mi_malloc(n))
SITE(mi_malloc_small, mi_malloc_small(n))
SITE(mi_zalloc, mi_zalloc(n))
SITE(mi_calloc, mi_calloc(n / 8, 8))
SITE(mi_mallocn, mi_mallocn(n / 8, 8))
SITE(mi_malloc_aligned, mi_malloc_aligned(n, 64))
SITE(mi_malloc_aligned_at, mi_malloc_aligned_at(n, 64, 0))
SITE(mi_calloc_aligned, mi_calloc_aligned(n / 8, 8, 64))
SITE(mi_posix_memalign, Out(mi_posix_memalign, 64, n))
SITE(mi_memalign, mi_memalign(64, n))
SITE(mi_aligned_alloc, mi_aligned_alloc(64, n))
SITE(mi_valloc, mi_valloc(n))
SITE(mi_new, mi_new(n))
SITE(mi_new_n, mi_new_n(n / 8, 8))
SITE(mi_realloc, mi_realloc(mi_malloc(kStart), n))
SITE(mi_reallocf, mi_reallocf(mi_malloc(kStart), n))
SITE(mi_reallocn, mi_reallocn(mi_malloc(kStart), n / 8, 8))
SITE(mi_rezalloc, mi_rezalloc(mi_zalloc(kStart), n))
SITE(mi_recalloc, mi_recalloc(mi_zalloc(kStart), n / 8, 8))
SITE(mi_realloc_aligned, mi_realloc_aligned(mi_malloc(kStart), n, 64))
SITE(mi_reallocarr, InPlace(mi_reallocarr, mi_malloc(kStart), n / 8, 8))
NOINLINE static void* site_mi_expand(Size n) {
  void* block = mi_malloc(n);
  return mi_expand(block, 100000000) == nullptr ? block : nullptr;
}
SITE(mi_strdup, mi_strdup(Text(n)))
SITE(mi_strndup, mi_strndup(Text(n + 10), n - 1))
SITE(mi_heap_malloc, mi_heap_malloc(heap, n))
SITE(mi_heap_zalloc, mi_heap_zalloc(heap, n))
SITE(mi_heap_calloc, mi_heap_calloc(heap, n / 8, 8))
SITE(mi_heap_malloc_aligned, mi_heap_malloc_aligned(heap, n, 64))
SITE(mi_heap_calloc_aligned_at, mi_heap_calloc_aligned_at(heap, n / 8, 8, 64, 0))
SITE(mi_heap_realloc, mi_heap_realloc(heap, mi_heap_malloc(heap, kStart), n))
SITE(mi_heap_recalloc_aligned_at, mi_heap_recalloc_aligned_at(heap, mi_heap_zalloc(heap, kStart), n / 8, 8, 64, 0))
SITE(mi_heap_strdup, mi_heap_strdup(heap, Text(n)))
NOINLINE static void site_mi_heap_destroy(void* all) {
  for (int i = 0; i < kMade; i++) memset(mi_heap_malloc(all, 300), 1, 300);
}

// In a program at a fixed address these make the loader bind everybody's strcmp to the program's own table of calls,
// which does not work before the program is relocated.
const void* const g_addresses[] = {
    reinterpret_cast<const void*>(static_cast<int (*)(const char*, const char*)>(strcmp)),
    reinterpret_cast<const void*>(static_cast<int (*)(const char*, const char*, Size)>(strncmp)),
    reinterpret_cast<const void*>(static_cast<Size (*)(const char*)>(strlen)),
    reinterpret_cast<const void*>(static_cast<void* (*)(void*, const void*, Size)>(memcpy)),
    reinterpret_cast<const void*>(static_cast<void* (*)(void*, int, Size)>(memset)),
    reinterpret_cast<const void*>(dlsym),
};

static void AskByName() {
  for (const void* const volatile* address = g_addresses; address != std::end(g_addresses); address++) {
    if (*address == nullptr) puts("FAIL: a function has no address");
  }
  const char* names[] = {"mallocx",    "je_malloc", "tc_malloc", "mi_malloc", "nallocx",
                         "free_sized", "cfree",     "_Znwm",     "sdallocx",  "reallocf"};
  for (const char* name : names) {
    dlerror();
    const void* found = dlsym(RTLD_DEFAULT, name);
    const bool error = dlerror() != nullptr;
    printf("dlsym says %s is %s, %s\n", name, found != nullptr ? "there" : "missing",
           error ? "with an error" : "without an error");
  }
  printf("what is found by name is what is linked: %d %d\n",
         dlsym(RTLD_DEFAULT, "mallocx") == reinterpret_cast<void*>(mallocx),
         dlsym(RTLD_DEFAULT, "tc_malloc") == reinterpret_cast<void*>(tc_malloc));
}

#define DRIVE(name, alignment, forms, ...) Drive(#name, name != nullptr, site_##name, alignment, forms, ##__VA_ARGS__)
#define ALWAYS(name, alignment, forms, ...) Drive(#name, true, site_##name, alignment, forms, ##__VA_ARGS__)

extern "C" __attribute__((visibility("default"))) int run_entries() {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  AskByName();
  ALWAYS(malloc, 16, kCForms);
  ALWAYS(calloc, 16, kCForms);
  ALWAYS(realloc, 16, kCForms, kStart, 1);
  ALWAYS(reallocarray, 16, kCForms, kStart, 1);
  ALWAYS(aligned_alloc, 64, kAlignedForms);
  ALWAYS(memalign, 64, kAlignedForms);
  ALWAYS(posix_memalign, 64, kAlignedForms);
  ALWAYS(valloc, 4096, kAlignedForms);
  DRIVE(reallocf, 16, kCForms, kStart, 1);
  DRIVE(reallocarr, 16, kCForms, kStart, 1);
  ALWAYS(strdup, 1, kCForms);
  ALWAYS(strndup, 1, kCForms);
  ALWAYS(wcsdup, 1, kCForms);
  ALWAYS(new, 16, kNewForms);
  DRIVE(mallocx, 16, kCForms);
  Drive("mallocx_aligned", mallocx != nullptr, site_mallocx_aligned, 64, kAlignedForms);
  DRIVE(rallocx, 16, kCForms, kStart, 1);
  if (xallocx != nullptr) {
    printf("sallocx %d, nallocx %zu\n", sallocx(kept[0], 0) >= 200, nallocx(200, 0));
    DRIVE(xallocx, 16, kCForms, kSameSize, 1);
    Drive("xallocx_refused", true, site_xallocx_refused, 16, kCForms);
  }
  if (je_malloc != nullptr) usable_size = je_malloc_usable_size;
  DRIVE(je_malloc, 16, kJeForms);
  DRIVE(je_calloc, 16, kJeForms);
  DRIVE(je_realloc, 16, kJeForms, kStart, 1);
  DRIVE(je_aligned_alloc, 64, kJeForms);
  DRIVE(je_posix_memalign, 64, kJeForms);
  DRIVE(je_mallocx, 16, kJeForms);
  DRIVE(je_rallocx, 16, kJeForms, kStart, 1);
  usable_size = malloc_usable_size;
  DRIVE(tc_malloc, 16, kCForms);
  DRIVE(tc_malloc_skip_new_handler, 16, kCForms);
  DRIVE(tc_calloc, 16, kCForms);
  DRIVE(tc_realloc, 16, kCForms, kStart, 1);
  DRIVE(tc_memalign, 64, kAlignedForms);
  DRIVE(tc_posix_memalign, 64, kAlignedForms);
  DRIVE(tc_valloc, 4096, kAlignedForms);
  DRIVE(tc_pvalloc, 4096, kAlignedForms);
  DRIVE(tc_new, 16, kNewForms);
  DRIVE(tc_newarray_nothrow, 16, kNewForms);
  DRIVE(tc_new_aligned, 64, kAlignedForms);
  if (tc_malloc_size != nullptr) printf("tc_malloc_size %d\n", tc_malloc_size(kept[0]) >= 200);
  DRIVE(mi_malloc, 16, kCForms);
  DRIVE(mi_malloc_small, 16, kCForms);
  DRIVE(mi_zalloc, 16, kCForms);
  DRIVE(mi_calloc, 16, kCForms);
  DRIVE(mi_mallocn, 16, kCForms);
  DRIVE(mi_malloc_aligned, 64, kAlignedForms);
  DRIVE(mi_malloc_aligned_at, 64, kAlignedForms);
  DRIVE(mi_calloc_aligned, 64, kAlignedForms);
  DRIVE(mi_posix_memalign, 64, kAlignedForms);
  DRIVE(mi_memalign, 64, kAlignedForms);
  DRIVE(mi_aligned_alloc, 64, kAlignedForms);
  DRIVE(mi_valloc, 4096, kAlignedForms);
  DRIVE(mi_new, 16, kNewForms);
  DRIVE(mi_new_n, 16, kNewForms);
  DRIVE(mi_realloc, 16, kCForms, kStart, 1);
  DRIVE(mi_reallocf, 16, kCForms, kStart, 1);
  DRIVE(mi_reallocn, 16, kCForms, kStart, 1);
  DRIVE(mi_rezalloc, 16, kCForms, kStart, 1);
  DRIVE(mi_recalloc, 16, kCForms, kStart, 1);
  DRIVE(mi_realloc_aligned, 16, kCForms, kStart, 1);  // mimalloc 2.0 does not always align what it moves
  DRIVE(mi_reallocarr, 16, kCForms, kStart, 1);
  DRIVE(mi_expand, 16, kCForms);
  DRIVE(mi_strdup, 1, kCForms);
  DRIVE(mi_strndup, 1, kCForms);
  if (mi_heap_new != nullptr) {
    heap = mi_heap_new();
    DRIVE(mi_heap_malloc, 16, kCForms);
    DRIVE(mi_heap_zalloc, 16, kCForms);
    DRIVE(mi_heap_calloc, 16, kCForms);
    DRIVE(mi_heap_malloc_aligned, 64, kAlignedForms);
    DRIVE(mi_heap_calloc_aligned_at, 64, kAlignedForms);
    DRIVE(mi_heap_realloc, 16, kCForms, kStart, 1);
    DRIVE(mi_heap_recalloc_aligned_at, 64, kAlignedForms, kStart, 1);
    DRIVE(mi_heap_strdup, 1, kCForms);
    mi_heap_delete(heap);  // its blocks live on
    void* all = mi_heap_new();
    site_mi_heap_destroy(all);
    mi_heap_destroy(all);
    printf("ALLOC site_mi_heap_destroy count=%d bytes=%d live=0\n", kMade, kMade * 300);
  }
  printf("%d blocks are kept\n", kept_count);
  return 0;
}

#ifdef ENTRIES_MAIN
int main() { return run_entries(); }
#endif
