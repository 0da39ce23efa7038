#include "interposer/bus_guard.h"

#include <string.h>

#include "interposer/elf_lookup.h"
#include "interposer/process_facts.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {

using SetAction = int (*)(int, const struct sigaction*, struct sigaction*);

// What the program has asked for so far. An entry is written once, so that the handler may read it at any moment.
struct Action {
  uint32_t state;  // EntryState
  struct sigaction action;
};
enum EntryState : uint32_t { kEmpty, kBeingWritten, kWritten };
constexpr uint32_t kActions = 64;
constexpr uint32_t kFound = 0;  // what was there at the start, which no call of the program's has set
constexpr uint32_t kNone = ~0u;
alignas(4096) Action actions[kActions];
uint32_t current;  // index of what holds now

SetAction real_set_action;
TakesFault takes_fault;
uint32_t owner;  // the process that all of this speaks of
bool is_decided;
bool is_on;

constexpr uint32_t kManyTouches = 10'000;  // in a second
uint64_t current_second;
uint32_t touches;  // in the current second

uint32_t OwnProcess() { return static_cast<uint32_t>(RawSyscall(SYS_getpid)); }

// Not a child that shares our memory, between vfork and exec. A sandbox may punish the question.
bool IsOwner() { return IsSandboxed() || OwnProcess() == owner; }

// The kernel's mask has 64 bits.
uint64_t MaskOf(const struct sigaction& action) {
  uint64_t mask;
  memcpy(&mask, &action.sa_mask, sizeof(mask));
  return mask;
}

bool IsSame(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_sigaction == b.sa_sigaction && a.sa_flags == b.sa_flags && MaskOf(a) == MaskOf(b);
}

uint32_t Current() { return __atomic_load_n(&current, __ATOMIC_ACQUIRE); }

// kNone: more different actions than a program has.
uint32_t IndexOf(const struct sigaction& action) {
  for (uint32_t i = kFound + 1; i < kActions; i++) {
    uint32_t state = __atomic_load_n(&actions[i].state, __ATOMIC_ACQUIRE);
    if (state == kWritten && IsSame(actions[i].action, action)) return i;
    if (state != kEmpty || !__atomic_compare_exchange_n(&actions[i].state, &state, kBeingWritten, false,
                                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    actions[i].action = action;
    __atomic_store_n(&actions[i].state, kWritten, __ATOMIC_RELEASE);
    return i;
  }
  return kNone;
}

void OnBusError(int signal, siginfo_t* info, void* context);

bool IsOurs(const struct sigaction& action) { return action.sa_sigaction == OnBusError; }

// What the kernel is told, so that the program's action gets what it would get.
int Install(const struct sigaction& wanted, struct sigaction* old) {
  struct sigaction action = wanted;
  if (wanted.sa_handler != SIG_IGN) {
    action.sa_sigaction = OnBusError;
    action.sa_flags |= SA_SIGINFO;
    action.sa_flags &= ~static_cast<int>(SA_RESETHAND);  // it would reset ours: OnBusError does it
    if (wanted.sa_handler == SIG_DFL) action.sa_flags |= SA_ONSTACK;
  }
  return real_set_action(SIGBUS, &action, old);
}

// Makes `index` the program's action. Two threads that do so at once agree about the last one.
int Hold(uint32_t index, struct sigaction* in_kernel) {
  const uint32_t before = __atomic_exchange_n(&current, index, __ATOMIC_ACQ_REL);
  uint32_t now = index;
  int result = Install(actions[now].action, in_kernel);
  while (result == 0 && now != Current()) {
    now = Current();
    result = Install(actions[now].action, nullptr);
  }
  if (result != 0) __atomic_compare_exchange_n(&current, &now, before, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  return result;
}

// The program's action as sigaction(2) tells it. libc adds how its handlers return, which is in the kernel's.
struct sigaction AsTold(uint32_t index, const struct sigaction& in_kernel) {
  constexpr int kHasRestorer = 0x04000000;  // SA_RESTORER of <asm/signal.h>
  struct sigaction told = actions[index].action;
  if (index != kFound) {
    told.sa_flags |= in_kernel.sa_flags & kHasRestorer;
    told.sa_restorer = in_kernel.sa_restorer;
  }
  return told;
}

// A fault ends the process when it is met again; what was sent is sent again, and comes when the handler has returned.
void DoDefault(int signal, siginfo_t* info) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  real_set_action(signal, &action, nullptr);
  if (info->si_code > 0) return;
  RawSyscall(SYS_rt_tgsigqueueinfo, static_cast<long>(OwnProcess()), RawSyscall(SYS_gettid), signal,
             reinterpret_cast<long>(info));
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const bool is_fault = info->si_code == BUS_ADRERR;
  if (is_fault && takes_fault(info->si_addr)) return;
  uint32_t index = Current();
  const struct sigaction& action = actions[index].action;
  if (action.sa_handler == SIG_DFL) return DoDefault(signal, info);
  if (action.sa_handler == SIG_IGN) return;  // set meanwhile
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    struct sigaction reset = action;
    reset.sa_handler = SIG_DFL;
    const uint32_t after = IndexOf(reset);
    if (after != kNone) __atomic_compare_exchange_n(&current, &index, after, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
  }
  // One without SA_SIGINFO does not look at the other arguments.
  action.sa_sigaction(signal, info, context);
}

void GiveUp() {
  __atomic_store_n(&is_on, false, __ATOMIC_RELEASE);
  real_set_action(SIGBUS, &actions[Current()].action, nullptr);
}

// The program may set its action meanwhile: on its own as long as `is_on` is not seen, and by Hold from then on.
void Start() {
  struct sigaction* found = &actions[kFound].action;
  if (real_set_action(SIGBUS, nullptr, found) != 0) return;
  __atomic_store_n(&is_on, true, __ATOMIC_RELEASE);
  if (found->sa_handler == SIG_IGN) return;
  struct sigaction before;
  if (Install(*found, &before) != 0) return GiveUp();
  if (IsOurs(before) || IsSame(before, *found)) {
    const uint32_t now = Current();
    if (now != kFound) Hold(now, nullptr);
    return;
  }
  const uint32_t index = IndexOf(before);
  if (index == kNone || Hold(index, nullptr) != 0) GiveUp();
}

}  // namespace

void BusGuardPrepare(TakesFault takes) {
  real_set_action = reinterpret_cast<SetAction>(FindNextFunction("sigaction"));
  takes_fault = takes;
  owner = OwnProcess();
  is_decided = real_set_action == nullptr;
}

void BusGuardNoteTouch() {
  if (BusGuardIsDecided()) return;
  const uint64_t second = MonotonicNowRoughly() >> 30;  // of 1.07 s
  if (__atomic_load_n(&current_second, __ATOMIC_RELAXED) != second) {
    __atomic_store_n(&current_second, second, __ATOMIC_RELAXED);
    __atomic_store_n(&touches, 0, __ATOMIC_RELAXED);
  }
  if (__atomic_add_fetch(&touches, 1, __ATOMIC_RELAXED) < kManyTouches) return;
  if (!IsOwner() || __atomic_exchange_n(&is_decided, true, __ATOMIC_ACQ_REL)) return;
  Start();
}

bool BusGuardIsDecided() { return __atomic_load_n(&is_decided, __ATOMIC_ACQUIRE); }
bool BusGuardIsOn() { return __atomic_load_n(&is_on, __ATOMIC_ACQUIRE); }

int BusGuardSetAction(const struct sigaction* action, struct sigaction* old) {
  const uint32_t program = Current();
  struct sigaction in_kernel;
  uint32_t index = kNone;
  if (action != nullptr && IsOwner()) {
    struct sigaction wanted = *action;
    const uint64_t never = 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1);  // the kernel takes them out
    const uint64_t mask = MaskOf(wanted) & ~never;
    memcpy(&wanted.sa_mask, &mask, sizeof(mask));
    index = IndexOf(wanted);
    if (index == kNone) GiveUp();
  }
  const int result = index != kNone ? Hold(index, &in_kernel) : real_set_action(SIGBUS, action, &in_kernel);
  if (result == 0 && old != nullptr)
    *old = IsOurs(in_kernel) || index != kNone ? AsTold(program, in_kernel) : in_kernel;
  return result;
}

sighandler_t BusGuardAdopt(sighandler_t result) {
  const struct sigaction program = actions[Current()].action;
  struct sigaction returned = {}, in_kernel;
  returned.sa_handler = result;
  if (IsOwner() && real_set_action(SIGBUS, nullptr, &in_kernel) == 0) {
    struct sigaction adopted = in_kernel;
    if (IsOurs(in_kernel)) {  // siginterrupt(3) changes a flag of what is there
      adopted = program;
      adopted.sa_flags = (program.sa_flags & ~SA_RESTART) | (in_kernel.sa_flags & SA_RESTART);
    }
    const uint32_t index = IndexOf(adopted);
    if (index == kNone || Hold(index, nullptr) != 0) GiveUp();
  }
  return IsOurs(returned) ? program.sa_handler : result;
}

}  // namespace cadastre
