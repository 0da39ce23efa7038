#include "interposer/thread_table.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>

#include "interposer/private_memory.h"
#include "interposer/profile_file.h"
#include "interposer/raw_syscall.h"
#include "interposer/thread_buffer.h"

namespace cadastre {
namespace {

using format::ThreadRecord;

// Who has a record: nobody (never used, or given back), somebody who is about to fill it, or a thread.
constexpr uint32_t kNobody = 0, kTaken = ~0u;
// Marks on a thread's id, which is below 2^22 (PID_MAX_LIMIT).
constexpr uint32_t kKept = 1u << 30, kEnded = 1u << 31;
constexpr uint32_t kTidMask = kKept - 1;

uint32_t* owners;
uint32_t next_thread = 1;
uint32_t reuse_cursor;  // the next one to look at; a hint: threads may look at the same one

// How many older records are looked at before a fresh one is opened, and for how many of those the kernel is asked
// whether their threads are still there (see thread_buffer.cc, kTakeoverTries). Records that are kept lie together, so
// that looks have to reach beyond them; one of them is asked about, to be marked.
constexpr uint32_t kReuseLooks = 64, kReuseTries = 4, kMarkTries = 1;

bool Claim(uint32_t index, uint32_t owner) {
  return __atomic_compare_exchange_n(&owners[index], &owner, kTaken, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

void MarkEnded(uint32_t index, uint32_t owner) {
  if (__atomic_compare_exchange_n(&owners[index], &owner, owner | kEnded, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    __atomic_fetch_or(&g_profile.threads[index].flags, format::kThreadEnded, __ATOMIC_RELAXED);
}

uint32_t Used() {
  const uint32_t next = __atomic_load_n(&next_thread, __ATOMIC_ACQUIRE);
  return next < g_profile.thread_capacity ? next : g_profile.thread_capacity;
}

// The index of an older record that nobody has any more, now claimed; 0 where the looks find none.
uint32_t TakeOlder(uint32_t used) {
  uint32_t tries = 0, marks = 0;
  for (uint32_t i = 0; i < kReuseLooks && i + 1 < used && tries < kReuseTries; i++) {
    const uint32_t cursor = __atomic_load_n(&reuse_cursor, __ATOMIC_RELAXED);
    const uint32_t index = cursor > 0 && cursor < used ? cursor : 1;
    __atomic_store_n(&reuse_cursor, index + 1, __ATOMIC_RELAXED);
    const uint32_t owner = __atomic_load_n(&owners[index], __ATOMIC_ACQUIRE);
    if (owner == kTaken || (owner & kEnded) != 0) continue;
    if ((owner & kKept) != 0) {
      if (marks++ < kMarkTries && IsDeadThread(owner & kTidMask)) MarkEnded(index, owner);
      continue;
    }
    if (owner != kNobody) {
      tries++;
      if (!IsDeadThread(owner)) continue;
    }
    if (Claim(index, owner)) return index;
  }
  return 0;
}

// The index of a record that is ours to fill, its state kWriting, all else zero; 0 where there is none (counted).
uint32_t Take() {
  const uint32_t used = Used();
  // While there are few, a new one is cheaper than asking the kernel which of the old ones have ended.
  const uint32_t few = g_profile.thread_capacity / 16;
  uint32_t index = used < few ? 0 : TakeOlder(used);
  if (index == 0 && used < g_profile.thread_capacity) {
    index = __atomic_fetch_add(&next_thread, 1, __ATOMIC_ACQ_REL);
    if (index >= g_profile.thread_capacity || !ProfileEnsure(&g_profile.threads[index], sizeof(ThreadRecord)))
      index = 0;
    if (index != 0) __atomic_store_n(&owners[index], kTaken, __ATOMIC_RELEASE);
  }
  if (index == 0) {
    __atomic_fetch_add(&g_profile.header->counters.threads_full, 1, __ATOMIC_RELAXED);
    return 0;
  }
  ThreadRecord* record = &g_profile.threads[index];
  __atomic_store_n(&record->state, format::kWriting, __ATOMIC_RELEASE);
  memset(reinterpret_cast<char*>(record) + sizeof(record->state), 0, sizeof(*record) - sizeof(record->state));
  return index;
}

void ReadName(ThreadRecord* record) {
  if (!IsSandboxed()) RawSyscall(SYS_prctl, PR_GET_NAME, reinterpret_cast<long>(record->name));
}

}  // namespace

bool ThreadTableInit(uint32_t capacity) {
  owners = ReserveMemory<uint32_t>(capacity * sizeof(*owners));
  return owners != nullptr;
}

uint32_t ThreadRecordPrepare(const ThreadState& creator, uint32_t creation_site, uint64_t now_ns) {
  if (IsSandboxed()) return 0;
  const uint32_t index = Take();
  if (index == 0) return 0;
  ThreadRecord* record = &g_profile.threads[index];
  record->start_ns = now_ns;
  record->creation_site = creation_site;
  if (creator.thread != 0) record->creator_creation_site = g_profile.threads[creator.thread].creation_site;
  return index;
}

void ThreadRecordGiveBack(uint32_t index) {
  __atomic_store_n(&g_profile.threads[index].state, format::kFree, __ATOMIC_RELEASE);
  __atomic_store_n(&owners[index], kNobody, __ATOMIC_RELEASE);
}

void ThreadRecordStart(ThreadState* state, uint32_t index, const StackBounds& block) {
  const uint32_t tid = OwnTid();
  if (tid == 0) return;  // sandboxed since: the record stays as it is, half-written
  ThreadRecord* record = &g_profile.threads[index];
  record->tid = tid;
  record->stack_low = block.low;
  record->stack_high = block.high;
  ReadName(record);
  __atomic_store_n(&record->state, format::kReady, __ATOMIC_RELEASE);
  __atomic_store_n(&owners[index], tid, __ATOMIC_RELEASE);
  state->thread = index;
}

void ThreadRecordKeepSlow(ThreadState* state, uint64_t now_ns) {
  const uint32_t tid = OwnTid();
  const bool is_new = state->thread == 0;
  if (is_new) state->thread = Take();
  if (state->thread == 0) {
    state->notes |= kLacksRecord;
    return;
  }
  ThreadRecord* record = &g_profile.threads[state->thread];
  if (is_new) {
    record->tid = tid;
    record->start_ns = now_ns;
  }
  ReadName(record);  // whoever created the thread may have named it
  __atomic_store_n(&record->state, format::kReady, __ATOMIC_RELEASE);
  __atomic_store_n(&owners[state->thread], tid == 0 ? kTaken : tid | kKept, __ATOMIC_RELEASE);
  state->notes |= kKeepsRecord;
}

void ThreadTableMarkEnded() {
  for (uint32_t index = 1; index < Used(); index++) {
    const uint32_t owner = __atomic_load_n(&owners[index], __ATOMIC_ACQUIRE);
    if (owner != kNobody && owner != kTaken && (owner & kEnded) == 0 && IsDeadThread(owner & kTidMask))
      MarkEnded(index, owner);
  }
}

bool IsDeadThread(uint32_t tid) {
  if (tid == 0 || IsSandboxed()) return false;
  return RawSyscall(SYS_tgkill, g_profile.header->pid, tid, 0) == -ESRCH;
}

uint32_t OwnTid() { return IsSandboxed() ? 0 : static_cast<uint32_t>(RawSyscall(SYS_gettid)); }

}  // namespace cadastre
