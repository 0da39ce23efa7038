#include "symbolizer/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cadastre {
namespace {

constexpr uintptr_t kPageBytes = 4096;

MappingGuard* g_first = nullptr;
struct sigaction g_before {};

// Runs on an access that found no page: nothing is half done, and mmap is a plain system call.
void OnSigbus(int, siginfo_t* info, void*) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const MappingGuard* guard = MappingGuard::First(); guard != nullptr; guard = guard->next()) {
    if (!guard->Has(address)) continue;
    void* page = reinterpret_cast<void*>(address & ~(kPageBytes - 1));
    if (mmap(page, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
      return;
    break;
  }
  // Not ours: the access is made again, and meets what was there before us.
  sigaction(SIGBUS, &g_before, nullptr);
}

}  // namespace

MappingGuard::MappingGuard(const void* mapping, size_t bytes)
    : begin_(reinterpret_cast<uintptr_t>(mapping)), end_(begin_ + bytes), next_(g_first) {
  if (g_first == nullptr) {
    struct sigaction action {};
    action.sa_sigaction = OnSigbus;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGBUS, &action, &g_before);
  }
  g_first = this;
}

MappingGuard::~MappingGuard() {
  for (MappingGuard** link = &g_first; *link != nullptr; link = &(*link)->next_) {
    if (*link == this) {
      *link = next_;
      break;
    }
  }
  if (g_first == nullptr) sigaction(SIGBUS, &g_before, nullptr);
}

const MappingGuard* MappingGuard::First() { return g_first; }

}  // namespace cadastre
