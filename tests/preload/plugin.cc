// A plug-in in C++ for a host in C. Built with the shared libstdc++, with a static one, and (OWN_NEW) with an operator
// new of its own. Allocates in every form, throws, prints what a right profile shows. Its aligned blocks have sizes
// that need no rounding.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {
long served;
std::vector<std::string>* words;
}  // namespace

#ifdef OWN_NEW
void* operator new(std::size_t bytes) {
  served++;
  if (void* block = std::malloc(bytes)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept {
  served--;
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  served--;
  std::free(block);
}
#endif

extern "C" {
__attribute__((noinline)) void* site_plugin_new(std::size_t bytes) { return ::operator new(bytes); }
__attribute__((noinline)) void* site_plugin_new_array(std::size_t bytes) { return ::operator new[](bytes); }
__attribute__((noinline)) void* site_plugin_new_nothrow(std::size_t bytes) {
  return ::operator new(bytes, std::nothrow);
}
__attribute__((noinline)) void* site_plugin_new_aligned(std::size_t bytes) {
  return ::operator new (bytes, std::align_val_t{64});
}
void* volatile kept[8];

__attribute__((visibility("default"))) void* run_plugin(void* of_host) {
  for (int i = 0; i < 50; i++) {
    ::operator delete(site_plugin_new(320));
    ::operator delete[](site_plugin_new_array(320), 320);
    ::operator delete(site_plugin_new_nothrow(320), std::nothrow);
    ::operator delete (site_plugin_new_aligned(320), std::align_val_t{64});
  }
  kept[0] = site_plugin_new(640);
  kept[1] = site_plugin_new_array(640);
  kept[2] = site_plugin_new_nothrow(640);
  kept[3] = site_plugin_new_aligned(640);
  for (const char* site : {"new", "new_array", "new_nothrow", "new_aligned"})
    std::printf("ALLOC site_plugin_%s count=51 bytes=16640 live=1 livebytes=640\n", site);
  words = new std::vector<std::string>;
  for (int i = 0; i < 1000; i++) words->push_back(std::string(100, static_cast<char>('a' + i % 26)));
  try {
    std::vector<char> too_large(static_cast<std::size_t>(-1) / 4);
    std::puts("there is room for everything");
  } catch (const std::bad_alloc&) {
    std::puts("bad_alloc is caught");
  }
  try {
    static_cast<void>((*words).at(2000));
  } catch (const std::exception& error) {
    std::printf("caught: %s\n", error.what());
  }
  std::printf("own operator new: %s\n", served > 0 ? "in use" : "none");
  std::free(of_host);
  return std::malloc(200);
}
}
