#include "interposer/session_gate.h"

#include <sys/mman.h>

#include "interposer/private_memory.h"
#include "interposer/raw_syscall.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18  // Linux 4.14
#endif

namespace cadastre {
namespace {

struct AlivePage {
  uint32_t is_alive, gate;
};
AlivePage* page;
bool can_be_wiped;

constexpr uint32_t kClosed = 0;

}  // namespace

constinit const uint32_t* g_session_gate = &kClosed;

bool AlivePageMake() {
  const long made = RawSyscall(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (IsSyscallError(made)) return false;
  NoteOwnMemory(static_cast<uint64_t>(made), 4096);
  can_be_wiped = RawSyscall(SYS_madvise, made, 4096, MADV_WIPEONFORK) == 0;
  page = reinterpret_cast<AlivePage*>(made);
  page->is_alive = 1;
  if (can_be_wiped) g_session_gate = &page->gate;
  return true;
}

bool AlivePageIsAlive() { return __atomic_load_n(&page->is_alive, __ATOMIC_RELAXED) != 0; }
bool AlivePageCanBeWiped() { return can_be_wiped; }

void SessionGateOpen() { __atomic_store_n(&page->gate, 1, __ATOMIC_SEQ_CST); }
void SessionGateClose() { __atomic_store_n(&page->gate, 0, __ATOMIC_SEQ_CST); }

}  // namespace cadastre
