#include "interposer/real_allocator.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>

#include "interposer/elf_lookup.h"
#include "interposer/thread_state.h"

namespace cadastre {

RealAllocator g_real;

namespace {

uint32_t real_ready;
const link_map* provider;
bool is_reached;
bool is_sanitizer;

constexpr size_t kPageBytes = 4096;

// Members made from the provider's own functions.
// Always: glibc's calls realloc through its PLT, which is our hook, and one allocation would be counted twice.
void* MadeReallocarray(void* pointer, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return g_real.realloc(pointer, bytes);
}

void* MadeMemalignFromPosix(size_t alignment, size_t bytes) {
  void* block = nullptr;
  if (alignment < sizeof(void*)) alignment = sizeof(void*);
  int error = g_real.posix_memalign(&block, alignment, bytes);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  return block;
}

int MadePosixMemalign(void** out, size_t alignment, size_t bytes) {
  if (alignment < sizeof(void*) || (alignment & (alignment - 1)) != 0) return EINVAL;
  int saved = errno;
  void* block = g_real.memalign(alignment, bytes);
  errno = saved;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

void* MadeAlignedAlloc(size_t alignment, size_t bytes) { return g_real.memalign(alignment, bytes); }
void* MadeValloc(size_t bytes) { return g_real.memalign(kPageBytes, bytes); }

void* MadePvalloc(size_t bytes) {
  size_t rounded;
  if (__builtin_add_overflow(bytes, kPageBytes - 1, &rounded)) {
    errno = ENOMEM;
    return nullptr;
  }
  return g_real.memalign(kPageBytes, rounded & ~(kPageBytes - 1));
}

// The provider does not say how large its blocks are; 0 keeps callers from writing past what they asked for.
size_t MadeUsableSize(void*) { return 0; }

// The provider's own; where we are not reached, the one that programs would find without us.
template <typename Function>
Function Take(const char* name, Function made) {
  void* found = is_reached ? FindInLibrary(provider, name) : FindNextFunction(name);
  return found != nullptr ? reinterpret_cast<Function>(found) : made;
}

// Also where it is another library's: a provider may be a wrapper that looks at some functions and leaves the others to
// libc (memusage has no memalign).
template <typename Function>
Function TakeOrNext(const char* name) {
  return Take(name, reinterpret_cast<Function>(FindNextFunction(name)));
}

}  // namespace

bool RealAllocatorIsReady() { return __atomic_load_n(&real_ready, __ATOMIC_ACQUIRE) != 0; }

bool RealAllocatorResolve() {
  if (RealAllocatorIsReady()) return true;
  if (ThreadStateOffset() == 0) return false;  // not relocated: FirstLibrary's address is not known yet
  provider = NextLibraryWith("malloc");
  if (provider == nullptr) return false;
  const link_map* before;
  // A sanitizer checks who frees what, and how much of libc is behind its own functions: there all is left as it is.
  is_sanitizer = FindInLibrary(provider, "__sanitizer_set_report_path") != nullptr;
  is_reached = !is_sanitizer && !MallocIsServedBeforeUs(&before);
  RealAllocator& real = g_real;
  real.calloc = TakeOrNext<decltype(real.calloc)>("calloc");
  real.realloc = TakeOrNext<decltype(real.realloc)>("realloc");
  const bool aligns = Take<void*>("memalign", nullptr) != nullptr || Take<void*>("posix_memalign", nullptr) != nullptr;
  auto take = [aligns]<typename Function>(const char* name, Function made) {
    return aligns ? Take(name, made) : TakeOrNext<Function>(name);
  };
  real.posix_memalign = take("posix_memalign", &MadePosixMemalign);
  real.memalign = take("memalign", &MadeMemalignFromPosix);
  real.aligned_alloc = take("aligned_alloc", &MadeAlignedAlloc);
  real.valloc = take("valloc", &MadeValloc);
  real.pvalloc = take("pvalloc", &MadePvalloc);
  void* next_usable_size = aligns ? nullptr : FindNextFunction("malloc_usable_size");
  real.reallocarray =
      is_reached ? &MadeReallocarray : Take<decltype(real.reallocarray)>("reallocarray", &MadeReallocarray);
  real.malloc_usable_size = Take<decltype(real.malloc_usable_size)>(
      "malloc_usable_size", next_usable_size != nullptr
                                ? reinterpret_cast<decltype(real.malloc_usable_size)>(next_usable_size)
                                : &MadeUsableSize);
  auto* next_malloc = Take<decltype(real.malloc)>("malloc", nullptr);
  auto* next_free = TakeOrNext<decltype(real.free)>("free");
  if (next_free == nullptr || real.calloc == nullptr || real.realloc == nullptr || real.memalign == nullptr)
    return false;
  // free last but one: its fast path takes a non-null pointer as "ready".
  real.malloc = next_malloc;
  __atomic_store_n(&real.free, next_free, __ATOMIC_RELEASE);
  __atomic_store_n(&real_ready, 1, __ATOMIC_RELEASE);
  return true;
}

bool RealAllocatorIsReached() { return is_reached; }
bool RealAllocatorIsSanitizer() { return is_sanitizer; }
const link_map* RealAllocatorLibrary() { return provider; }

bool MallocIsServedBeforeUs(const link_map** by) {
  const link_map* own = OwnLibrary();
  for (const link_map* map = FirstLibrary(); map != nullptr && map != own; map = map->l_next) {
    // libc_malloc_debug.so's has no default version; the programs' references ask for the version that it has.
    if (FindInLibrary(map, "malloc") != nullptr || FindHiddenInLibrary(map, "malloc") != nullptr) {
      *by = map;
      return true;
    }
  }
  return false;
}

}  // namespace cadastre
