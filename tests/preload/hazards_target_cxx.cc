// Ways of C++ to get at a preloaded profiler, as hazards_target.c: hazards_target_cxx NAME [ARGUMENT...].
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NI __attribute__((noinline))

namespace {
constexpr int kBlocks = 100;
std::vector<void*> kept;
jmp_buf back;
std::atomic<bool> stop;
}  // namespace

extern "C" {
NI void site_before() {
  for (int i = 0; i < kBlocks; i++) kept.push_back(malloc(703));
}
NI void site_after() {
  for (int i = 0; i < kBlocks; i++) kept.push_back(::operator new(907));
}
}

namespace {

// A new_handler that leaves operator new by longjmp, or by an exception.
void Jump() { longjmp(back, 1); }
void Throw() { throw std::runtime_error("no more"); }
void LeaveNew(char**) {
  volatile std::size_t too_much = static_cast<std::size_t>(-1) / 4;
  for (int i = 0; i < 50; i++) {
    std::set_new_handler(Jump);
    if (setjmp(back) == 0) ::operator delete(::operator new(too_much));
    std::set_new_handler(Throw);
    try {
      ::operator delete(::operator new(too_much, std::align_val_t(64)));
    } catch (const std::runtime_error&) {
    }
  }
  int thrown = 0, kept = 0, handled = 0;
  for (int i = 0; i < 50; i++) {
    try {  // what a handler throws does not leave a nothrow new
      kept += ::operator new(too_much, std::align_val_t(64), std::nothrow) == nullptr;
      kept += ::operator new[](too_much, std::align_val_t(64), std::nothrow) == nullptr;
    } catch (const std::runtime_error&) {
      thrown++;
    }
  }
  static int calls;
  calls = 0;
  std::set_new_handler([] {
    if (++calls % 3 == 0) std::set_new_handler(nullptr);
  });
  try {
    ::operator delete(::operator new(too_much, std::align_val_t(64)));
  } catch (const std::bad_alloc&) {
    handled = calls;
  }
  kept += ::operator new(too_much, std::align_val_t(64), std::nothrow) == nullptr;  // without a handler
  std::set_new_handler(nullptr);
  std::printf("left operator new 100 times; %d nothrow, %d thrown, %d handled\n", kept, thrown, handled);
}

// Exceptions in three threads while a fourth loads and unloads a library, whose constructor allocates.
long Deep(int depth, int thread) {
  if (depth > 0) return Deep(depth - 1, thread) + 1;
  throw std::runtime_error(std::string(100 + thread, 'x'));
}
void LoaderStorm(char** arguments) {
  std::atomic<int> thrown = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++) {
    threads.emplace_back([&, t] {
      while (!stop) {
        try {
          thrown += static_cast<int>(Deep(20, t));
        } catch (const std::runtime_error& error) {
          if (std::strlen(error.what()) == 100u + static_cast<unsigned>(t)) thrown++;
        }
      }
    });
  }
  for (int i = 0; i < 200; i++) {
    void* library = dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) std::abort();
    free(reinterpret_cast<void* (*)()>(dlsym(library, "make"))());
    dlclose(library);
  }
  while (thrown < 1000) std::this_thread::yield();
  stop = true;
  for (auto& thread : threads) thread.join();
  std::printf("the storm is over\n");
}

// Destructors of thread_local objects that allocate and free, after all of ours would have gone.
struct Late {
  std::string text = std::string(333, 'a');
  ~Late() {
    std::vector<std::string> more(10, text + text);
    text = more[3];
  }
};
thread_local Late late;
struct Static {
  std::string text = std::string(444, 's');
  ~Static() { text += text; }
};
Static at_exit;
void ThreadLocals(char**) {
  std::atomic<std::size_t> sum = 0;
  for (int i = 0; i < 100; i++) std::thread([&] { sum += late.text.size(); }).join();
  std::printf("%zu in thread_local objects\n", sum.load() + late.text.size());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const std::string name = arguments[1];
  kept.reserve(1000);
  site_before();
  if (name == "leave_new") LeaveNew(arguments + 2);
  if (name == "loader_storm") LoaderStorm(arguments + 2);
  if (name == "thread_locals") ThreadLocals(arguments + 2);
  site_after();
  std::printf("ALLOC site_before count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 703, kBlocks,
              kBlocks * 703);
  std::printf("ALLOC site_after count=%d bytes=%d live=%d livebytes=%d\n", kBlocks, kBlocks * 907, kBlocks,
              kBlocks * 907);
  return 0;
}
