// dlclose: after the real call, the library map retires what has gone.
//
// dlopen is not interposed. A wrapper that returns would become "the caller" and change whose RUNPATH is searched; a
// tail-jump that only marks the map dirty would tell us nothing: a new library is found when its first pc is met, and
// one that replaces another at the same addresses is told apart by IsLibraryStillLoaded.
#include <atomic>

#include "interposer/elf_lookup.h"
#include "interposer/library_map.h"
#include "interposer/session.h"

namespace cadastre {
namespace {
std::atomic<void*> g_real_dlclose{nullptr};
}  // namespace
}  // namespace cadastre

extern "C" __attribute__((visibility("default"))) int dlclose(void* handle) {
  void* function = cadastre::g_real_dlclose.load(std::memory_order_acquire);
  if (function == nullptr) {
    function = cadastre::FindLoadedFunction("dlclose");
    if (function == nullptr) return -1;  // nobody could have opened a handle
    cadastre::g_real_dlclose.store(function, std::memory_order_release);
  }
  cadastre::LibraryMapBeforeDlclose();
  int result = reinterpret_cast<int (*)(void*)>(function)(handle);
  cadastre::SessionFileIsWhole();  // when the library went is noted in its record
  cadastre::LibraryMapAfterDlclose();
  return result;
}
