#include "interposer/recorder.h"

#include <string.h>

#include "interposer/fast_math.h"
#include "interposer/jvm/jvm.h"
#include "interposer/known_stacks.h"
#include "interposer/library_map.h"
#include "interposer/private_memory.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"
#include "interposer/real_allocator.h"
#include "interposer/sampler.h"
#include "interposer/session.h"
#include "interposer/site_table.h"
#include "interposer/stack_tree.h"
#include "interposer/thread_buffer.h"
#include "interposer/thread_name.h"
#include "interposer/thread_state.h"
#include "interposer/thread_table.h"

namespace cadastre {
namespace {

// Captured frames before they are interned: not on the target's stack, which may be small.
uint64_t (*scratch)[kMaxFrames];
// For each buffer what its thread's last stacks were; nullptr: samples are too far apart for that to help.
struct Remembered {
  StackMemo last;
  KnownStacks known;
};
Remembered* remembered;
StackTree stack_tree;

void Count(uint64_t* counter, uint64_t by = 1) { __atomic_fetch_add(counter, by, __ATOMIC_RELAXED); }

// The thread's own stack. Capture finds out whether sp lies in it (or on an alternate or a coroutine's stack).
const StackBounds& OwnStack(ThreadState* thread) {
  StackBounds* stack = &thread->thread_stack;
  if (stack->high == 0 && IsMainThread()) MainThreadStack(&stack->low, &stack->high);
  return *stack;
}

uint32_t InternStack(const uint64_t* frames, uint32_t count, format::SiteKind kind, uint32_t flags) {
  if ((flags & format::kSiteTruncatedMask) != 0) Count(&g_profile.header->counters.stacks_truncated);
  return SiteIntern(frames, count, kind, flags);
}

// Of a stack that `memo` has seen all of, the node in the tree, which may know the site; 0 = there is none.
uint32_t NodeOf(StackMemo* memo) {
  return memo->Node(StackTree::kRoot, [](uint32_t caller, uint64_t frame) { return stack_tree.Child(caller, frame); });
}

uint32_t CaptureByTree(const EntryRegisters& registers, const StackBounds& bounds, uint64_t* frames,
                       format::SiteKind kind, StackMemo* memo) {
  uint32_t flags, count;
  const bool is_in_memo = CaptureInMemo(registers, bounds, frames, &count, &flags, memo);
  const bool is_plain = kind == format::kSiteMalloc && flags == 0;
  const uint32_t node = is_plain ? NodeOf(memo) : 0;
  if (const uint32_t site = node != 0 ? stack_tree.site(node) : 0) return site;
  if (is_in_memo) count = memo->Words(frames, kMaxFrames);
  const uint32_t site = InternStack(frames, count, kind, flags);
  // One that had no room is counted each time.
  if (node != 0 && site != format::kSiteOverflow) stack_tree.SetSite(node, site);
  return site;
}

// Where samples are frequent.
uint32_t CaptureSiteAgain(const EntryRegisters& registers, const StackBounds& bounds, uint64_t* frames,
                          format::SiteKind kind, Remembered* before) {
  const bool is_own_stack = bounds.low != 0 && registers.sp >= bounds.low && registers.sp < bounds.high;
  if (is_own_stack) {
    if (const uint32_t site = before->known.Find(registers, bounds.high, kind, IsLibraryStillLoaded)) return site;
  }
  const uint32_t site = CaptureByTree(registers, bounds, frames, kind, &before->last);
  // Likewise.
  if (is_own_stack && site != format::kSiteOverflow)
    before->known.Add(registers, bounds.high, kind, before->last, site);
  return site;
}

uint32_t CaptureSite(ThreadState* thread, const EntryRegisters& registers, format::SiteKind kind) {
  if (thread->buffer == 0) {
    const uint64_t leaf = CaptureLeaf(registers);
    return InternStack(&leaf, 1, kind, format::kSiteTruncatedSmallStack);
  }
  const StackBounds& bounds = OwnStack(thread);
  uint64_t* frames = scratch[thread->buffer - 1];
  if (remembered != nullptr) return CaptureSiteAgain(registers, bounds, frames, kind, &remembered[thread->buffer - 1]);
  uint32_t flags = 0;
  const uint32_t count = CaptureStack(registers, bounds, frames, kMaxFrames, &flags);
  return InternStack(frames, count, kind, flags);
}

uint32_t ContextOf(ThreadState* thread) {
  if (!JvmIsReady()) return 0;
  ThreadNameUpdate(thread);
  return thread->work == kThreadWorkCompiler && !IsSandboxed() ? JvmThreadContext() : 0;
}

// Not for each sample: it is one cache line for all threads. Then it is time to look at the file again.
void NoteTime(ThreadState* thread, uint64_t now_ns) {
  constexpr uint64_t kResolutionNs = 1'000'000;
  uint64_t* last = &g_profile.header->last_sample_ns;
  if (now_ns <= __atomic_load_n(last, __ATOMIC_RELAXED) + kResolutionNs) return;
  __atomic_store_n(last, now_ns, __ATOMIC_RELAXED);
  thread->until_look = 0;
}

// A counter that this thread alone adds to: no other processor may come between, and no signal handler of the thread
// either, for it is one instruction.
void CountOwn(uint64_t* counter, uint64_t by) { asm volatile("addq %1, %0" : "+m"(*counter) : "er"(by) : "cc"); }

uint32_t BufferOf(const ThreadState* thread) { return thread == nullptr ? 0 : thread->buffer; }

// In the thread's own counter, or in one for all who have no buffer.
void CountFor(const ThreadState* thread, uint64_t format::BufferRecord::*own, uint64_t format::Counters::*shared,
              int by = 1) {
  const auto more = static_cast<uint64_t>(static_cast<int64_t>(by));
  if (const uint32_t buffer = BufferOf(thread); buffer != 0) {
    CountOwn(&(g_profile.buffers[buffer - 1].*own), more);
  } else {
    Count(&(g_profile.header->counters.*shared), more);
  }
}
void CountFrees(const ThreadState* thread, int by) {
  CountFor(thread, &format::BufferRecord::frees, &format::Counters::frees, by);
}

// Who frees is asked only where a garbage collector may be behind it.
void CountReaped(ThreadState* thread, uint32_t site, int by) {
  if (JvmIsReady()) SiteFreed(site, thread != nullptr && ThreadIsReaper(thread), by);
}

void RecordSample(ThreadState* thread, void* pointer, uint64_t bytes, uint64_t weight,
                  const EntryRegisters& registers) {
  format::Counters* counters = &g_profile.header->counters;
  const uint64_t now = SessionSampleTime();
  ThreadRecordKeep(thread, now);
  BufferPrepare(thread);
  const LivePlace place = LivePrefetch(reinterpret_cast<uint64_t>(pointer), thread->buffer);
  const uint32_t site = CaptureSite(thread, registers, format::kSiteMalloc);
  SitePrefetch(site);
  LiveSampleData sample = {
      reinterpret_cast<uint64_t>(pointer), bytes, weight, now, site, thread->thread, ContextOf(thread)};
  bool had_old = false;
  LiveSampleData old;
  const bool inserted = LiveInsert(sample, place, thread->buffer, &had_old, &old);
  if (had_old) {
    SiteLiveRemoved(old.site, old.weight);
    Count(&counters->missed_frees);
  }
  SiteNoteThread(site, thread->thread);
  if (inserted) {
    SiteLiveAdded(site, weight, now);
    CountFor(thread, &format::BufferRecord::samples, &format::Counters::samples);
  } else {
    Count(&counters->dropped_live_full);
    Count(&counters->dropped_weight_bytes, weight);
  }
  BufferAppend(thread, {site, 1, SampleCountFixed(bytes, weight), weight, SampleVariance(bytes, weight)});
  NoteTime(thread, now);
}

// What the session has to say before it records: is it for this process, has it a whole file, or none yet?
bool MayRecord(ThreadState* thread) {
  if (SessionCurrentState() == SessionState::kNew) SessionPrepare();
  const SessionState state = SessionCurrentState();
  const bool is_lost = state == SessionState::kRecording && !SessionFileIsWholeSlow(&thread->until_look);
  if (is_lost || state == SessionState::kOff || !RealAllocatorIsReached()) {
    thread->countdown = kCountdownOff;
    return false;
  }
  return state != SessionState::kNew && state != SessionState::kPreparing;
}

bool RecordIfDue(ThreadState* thread, void* pointer, uint64_t bytes, uint64_t interval, bool is_paused,
                 const EntryRegisters& registers) {
  const SampleDecision decision = DecideSample(thread, bytes, interval, is_paused);
  if (!decision.record) return false;
  if (!SessionOpen()) {
    if (SessionCurrentState() != SessionState::kOpening) thread->countdown = kCountdownOff;  // off, or a fork child
    return false;
  }
  RecordSample(thread, pointer, bytes, decision.weight_bytes, registers);
  return true;
}

}  // namespace

bool RecorderInit(uint32_t buffers) {
  scratch = ReserveMemory<uint64_t[kMaxFrames]>(buffers * sizeof(*scratch));
  if (SessionSamplesAreFrequent()) {
    remembered = ReserveMemory<Remembered>(buffers * sizeof(Remembered));
    stack_tree.Init(g_profile.site_capacity);
  }
  return scratch != nullptr;
}

void RecordAllocation(void* pointer, uint64_t bytes, const EntryRegisters& registers) {
  ThreadState* thread = CurrentThreadState();
  if (thread == nullptr) return;
  ReentryGuard guard(thread);
  if (!guard.entered()) {
    if (thread->guard == kGuardOwnWork) thread->notes |= kSawOwnWork;
    if (thread->guard == kGuardRecording && SessionIsRecording()) Count(&g_profile.header->counters.nested_skipped);
    return;
  }
  if (!SessionGateIsOpen(&thread->until_look) && !MayRecord(thread)) return;
  bool is_paused;
  const uint64_t interval = SessionInterval(&is_paused);
  // Every block: nothing to draw, to estimate or to thin.
  if (interval <= 1) {
    RecordIfDue(thread, pointer, bytes, interval, is_paused, registers);
    return;
  }
  const OwnFloatingPoint floating_point;
  if (thread->random == 0) thread->random = SessionThreadSeed();
  if (RecordIfDue(thread, pointer, bytes, interval, is_paused, registers)) SessionNoteFill(&thread->random);
}

void RecordMapping(uint64_t start, uint64_t end, uint32_t flags, const MappingMove* moved,
                   const EntryRegisters& registers) {
  MappingRange range = {start, end, 0, 0, 0, flags};
  ThreadState* thread = CurrentThreadState();
  // libunwind's own pool, when it is loaded: ours, and nobody's in the report.
  const bool is_allocators = (flags & format::kMappingAllocator) != 0;
  if (thread != nullptr && thread->guard == kGuardOwnWork && !is_allocators) return;
  // Nothing but a place in the queue before the session is prepared, in a signal handler that interrupts the recorder,
  // and for an allocator, which may hold its locks: it needs no stack, and it opens no profile.
  const SessionState state = SessionCurrentState();
  const bool is_prepared = state != SessionState::kNew && state != SessionState::kPreparing;
  if (thread != nullptr && is_prepared && !is_allocators) {
    ReentryGuard guard(thread);
    if (guard.entered()) {
      if (state == SessionState::kRecording && !SessionFileIsWhole()) return;
      if (SessionIsPaused()) return;
      if (SessionOpen()) {
        ThreadRecordKeep(thread, SessionNow());
        BufferPrepare(thread);
        range.site = CaptureSite(thread, registers, format::kSiteMmap);
      }
    }
  }
  if (SessionIsRecording()) {
    range.time_ns = SessionNow();
    range.thread = thread->thread;
  }
  if (moved != nullptr) {
    MappingPostMove(*moved, range, registers.pc);
  } else {
    MappingPostInsert(range, registers.pc);
  }
}

uint32_t RecordThreadCreation(const EntryRegisters& registers) {
  ThreadState* thread = CurrentThreadState();
  if (thread == nullptr) return 0;
  ReentryGuard guard(thread);
  if (!guard.entered()) return 0;
  if (SessionCurrentState() == SessionState::kRecording && !SessionFileIsWhole()) return 0;
  if (SessionIsPaused() || !SessionOpen()) return 0;
  BufferPrepare(thread);
  return ThreadRecordPrepare(*thread, CaptureSite(thread, registers, format::kSiteStack), SessionNow());
}

bool RecordFree(void* pointer, LiveSampleData* removed) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const LivePlace place = LivePrefetchRecord(address);
  ThreadState* thread = CurrentThreadState();
  if (!(thread != nullptr ? SessionFileIsWhole(&thread->until_look) : SessionFileIsWhole())) return false;
  LiveShare share;
  if (removed != nullptr) {
    if (!LiveRemove(address, place, BufferOf(thread), removed)) return false;
    share = {removed->site, removed->weight};
  } else if (!LiveRemove(address, place, BufferOf(thread), &share)) {
    return false;
  }
  SiteLiveRemoved(share.site, share.weight);
  CountReaped(thread, share.site, 1);
  CountFrees(thread, 1);
  return true;
}

void UndoFree(const LiveSampleData& removed) {
  ThreadState* thread = CurrentThreadState();
  CountReaped(thread, removed.site, -1);
  bool had_old = false;
  LiveSampleData old;
  if (!LiveInsert(removed, BufferOf(thread), &had_old, &old)) return;
  if (had_old) SiteLiveRemoved(old.site, old.weight);
  SiteLiveAdded(removed.site, removed.weight, SessionNow());
  CountFrees(thread, -1);
}

}  // namespace cadastre
