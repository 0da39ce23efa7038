#include "interposer/real_allocator.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include "interposer/elf_lookup.h"
#include "interposer/thread_state.h"

namespace cadastre {

RealAllocator g_real;
uint8_t g_operator_is_own[kOperatorCount];

const char kOperatorNames[kOperatorCount][40] = {"_Znwm",
                                                 "_Znam",
                                                 "_ZnwmRKSt9nothrow_t",
                                                 "_ZnamRKSt9nothrow_t",
                                                 "_ZnwmSt11align_val_t",
                                                 "_ZnamSt11align_val_t",
                                                 "_ZnwmSt11align_val_tRKSt9nothrow_t",
                                                 "_ZnamSt11align_val_tRKSt9nothrow_t",
                                                 "_ZdlPv",
                                                 "_ZdaPv",
                                                 "_ZdlPvm",
                                                 "_ZdaPvm",
                                                 "_ZdlPvRKSt9nothrow_t",
                                                 "_ZdaPvRKSt9nothrow_t",
                                                 "_ZdlPvSt11align_val_t",
                                                 "_ZdaPvSt11align_val_t",
                                                 "_ZdlPvmSt11align_val_t",
                                                 "_ZdaPvmSt11align_val_t",
                                                 "_ZdlPvSt11align_val_tRKSt9nothrow_t",
                                                 "_ZdaPvSt11align_val_tRKSt9nothrow_t"};

namespace {

uint32_t real_ready;
const link_map* provider;

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

template <typename Function>
Function Take(const char* name, Function made) {
  void* found = FindInLibrary(provider, name);
  return found != nullptr ? reinterpret_cast<Function>(found) : made;
}

// libstdc++ rounds the size of an aligned block up to its alignment and then calls aligned_alloc, so that hook would
// record a size that nobody asked for. These do what it does, with the caller's size; when there is no memory, or the
// alignment is none, it has the word: its new_handler, its exception. Its delete calls free, so the pairs stay right.
using NewForm = void* (*)(size_t, size_t, size_t);
NewForm runtime_aligned_new[kNewArrayAlignedNothrow - kNewAligned + 1];

template <int kIndex>
void* AlignedNew(size_t bytes, size_t alignment, size_t tag) {
  if (alignment != 0 && (alignment & (alignment - 1)) == 0) {
    void* block = g_real.memalign(alignment, bytes == 0 ? 1 : bytes);
    if (block != nullptr) return block;
  }
  return runtime_aligned_new[kIndex - kNewAligned](bytes, alignment, tag);
}
constexpr NewForm kAlignedNew[] = {&AlignedNew<kNewAligned>, &AlignedNew<kNewArrayAligned>,
                                   &AlignedNew<kNewAlignedNothrow>, &AlignedNew<kNewArrayAlignedNothrow>};

bool IsLibstdcxx(const link_map* library) {
  const char* slash = library->l_name == nullptr ? nullptr : strrchr(library->l_name, '/');
  return slash != nullptr && strncmp(slash + 1, "libstdc++.so", 12) == 0;
}

// The allocator's own form, else that of the C++ runtime, which calls malloc or aligned_alloc.
void ResolveOperators() {
  for (int i = 0; i < kOperatorCount; i++) {
    void* found = FindInLibrary(provider, kOperatorNames[i]);
    g_operator_is_own[i] = found != nullptr;
    if (found == nullptr) {
      const link_map* runtime = NextLibraryWith(kOperatorNames[i]);
      if (runtime != nullptr) found = FindInLibrary(runtime, kOperatorNames[i]);
      if (found != nullptr && i >= kNewAligned && i <= kNewArrayAlignedNothrow && IsLibstdcxx(runtime)) {
        runtime_aligned_new[i - kNewAligned] = reinterpret_cast<NewForm>(found);
        found = reinterpret_cast<void*>(kAlignedNew[i - kNewAligned]);
        g_operator_is_own[i] = 1;  // its hook counts
      }
    }
    g_real.operators[i] = reinterpret_cast<void* (*)(size_t, size_t, size_t)>(found);
  }
}

}  // namespace

bool RealAllocatorIsReady() { return __atomic_load_n(&real_ready, __ATOMIC_ACQUIRE) != 0; }

bool RealAllocatorResolve() {
  if (RealAllocatorIsReady()) return true;
  if (ThreadStateOffset() == 0) return false;  // not relocated: FirstLibrary's address is not known yet
  provider = NextLibraryWith("malloc");
  if (provider == nullptr) return false;
  RealAllocator& real = g_real;
  real.calloc = Take<decltype(real.calloc)>("calloc", nullptr);
  real.realloc = Take<decltype(real.realloc)>("realloc", nullptr);
  real.posix_memalign = Take<decltype(real.posix_memalign)>("posix_memalign", &MadePosixMemalign);
  real.memalign = Take<decltype(real.memalign)>(
      "memalign", real.posix_memalign == &MadePosixMemalign ? nullptr : &MadeMemalignFromPosix);
  real.aligned_alloc = Take<decltype(real.aligned_alloc)>("aligned_alloc", &MadeAlignedAlloc);
  real.valloc = Take<decltype(real.valloc)>("valloc", &MadeValloc);
  real.pvalloc = Take<decltype(real.pvalloc)>("pvalloc", &MadePvalloc);
  real.reallocarray = &MadeReallocarray;
  real.malloc_usable_size = Take<decltype(real.malloc_usable_size)>("malloc_usable_size", &MadeUsableSize);
  ResolveOperators();
  auto* next_malloc = Take<decltype(real.malloc)>("malloc", nullptr);
  auto* next_free = Take<decltype(real.free)>("free", nullptr);
  if (next_free == nullptr || real.calloc == nullptr || real.realloc == nullptr || real.memalign == nullptr)
    return false;
  // free last but one: its fast path takes a non-null pointer as "ready".
  real.malloc = next_malloc;
  __atomic_store_n(&real.free, next_free, __ATOMIC_RELEASE);
  __atomic_store_n(&real_ready, 1, __ATOMIC_RELEASE);
  return true;
}

void ProbeOwnOperators() {
  static const char kNothrowTag = 0;
  const size_t tag = reinterpret_cast<size_t>(&kNothrowTag);
  constexpr size_t kBytes = 64, kAlignment = 64;
  ThreadState* thread = CurrentThreadState();
  for (int i = kNew; i <= kNewArrayAlignedNothrow; i++) {
    if (!g_operator_is_own[i]) continue;
    const bool aligned = i >= kNewAligned;
    thread->countdown = 0;  // "not drawn": whatever hook is reached takes its slow path and leaves its mark
    thread->own_work_seen = 0;
    void* block = aligned ? g_real.operators[i](kBytes, kAlignment, tag) : g_real.operators[i](kBytes, tag, 0);
    if (thread->own_work_seen != 0) g_operator_is_own[i] = 0;
    g_real.free(block);
  }
}

const link_map* RealAllocatorLibrary() { return provider; }

bool MallocIsServedBeforeUs(const link_map** by) {
  const link_map* own = OwnLibrary();
  for (const link_map* map = FirstLibrary(); map != nullptr && map != own; map = map->l_next) {
    if (FindInLibrary(map, "malloc") != nullptr) {
      *by = map;
      return true;
    }
  }
  return false;
}

void* ResolveOperatorFor(OperatorIndex index, const void* caller) {
  const char* name = kOperatorNames[index];
  const link_map* library = LibraryOf(caller);
  if (library != nullptr && library != OwnLibrary()) {
    void* found = FindInLibrary(library, name);
    if (found != nullptr) return found;
  }
  library = AnyLibraryWith(name);
  return library != nullptr ? FindInLibrary(library, name) : nullptr;
}

}  // namespace cadastre
