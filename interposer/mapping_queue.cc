#include "interposer/mapping_queue.h"

#include <errno.h>
#include <sys/mman.h>

#include "interposer/allocator_code.h"
#include "interposer/process_facts.h"
#include "interposer/profile_file.h"
#include "interposer/profile_format.h"
#include "interposer/raw_syscall.h"
#include "interposer/session.h"
#include "interposer/site_table.h"
#include "interposer/stack_capture.h"
#include "interposer/thread_buffer.h"
#include "interposer/thread_state.h"

namespace cadastre {
namespace {

enum class EventKind : uint32_t { kInsert, kRemove, kMark, kMarkSegment, kGone, kUnmark, kMove, kProtect };

struct Event {
  EventKind kind;
  ProtectExtent extent;
  MappingRange range;
  uint64_t pc;
  MappingMove move;  // of kMark, kGone and kUnmark: its place and mark
};

// sequence == position: empty, for the producer whose turn that is; position + 1: full. Between the two the word is a
// claim: kClaimed and where the producer's StackMark lies, for a signal handler may leave it for good.
struct Slot {
  uint64_t sequence_minus_index;
  Event event;
};
constexpr uint64_t kClaimed = 1ull << 63;
constexpr int kYields = 1000, kMostYields = 1'000'000;  // at least; where the clock stands still
constexpr uint64_t kPatienceNs = 100'000'000;           // more than a busy machine takes to run a thread again
constexpr uint64_t kSlots = 1024;
alignas(4096) Slot slots[kSlots];
uint64_t head;              // next position to be claimed
uint64_t tail;              // next to be carried out; only whoever holds `busy` changes it
uint64_t busy;              // where the StackMark of whoever carries out lies; 0 = nobody
uint64_t busy_thread;       // its thread pointer, once it has said so
uint64_t stuck_at = ~0ull;  // where `tail` stood when waiting for it was in vain
uint64_t lost_early;

uint64_t next_mark = 1;

void CountLost() {
  if (SessionIsRecording()) {
    __atomic_fetch_add(&g_profile.header->counters.mapping_events_lost, 1, __ATOMIC_RELAXED);
  } else {
    __atomic_fetch_add(&lost_early, 1, __ATOMIC_RELAXED);
  }
}

// A slot's sequence is stored less its index, so that an array of zeros is an empty ring.
uint64_t SequenceOf(const Slot& slot) {
  return __atomic_load_n(&slot.sequence_minus_index, __ATOMIC_ACQUIRE) + static_cast<uint64_t>(&slot - slots);
}
void SetSequence(Slot* slot, uint64_t sequence) {
  __atomic_store_n(&slot->sequence_minus_index, sequence - static_cast<uint64_t>(slot - slots), __ATOMIC_RELEASE);
}

// Whoever sees that the slot at `head` is taken moves it on, so that nobody waits for a producer that was interrupted.
bool Put(const Event& event) {
  StackMark mark;
  const uint64_t claim = kClaimed | mark.Set();
  for (;;) {
    const uint64_t position = __atomic_load_n(&head, __ATOMIC_ACQUIRE);
    // Read before the slot: what is found there is of this turn then, not of the one before.
    const bool is_full =
        static_cast<int64_t>(position - __atomic_load_n(&tail, __ATOMIC_ACQUIRE)) >= static_cast<int64_t>(kSlots);
    if (is_full) return false;
    const uint64_t index = position % kSlots;
    Slot* slot = &slots[index];
    uint64_t expected = position - index;
    const bool is_mine = __atomic_compare_exchange_n(&slot->sequence_minus_index, &expected, claim, false,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    uint64_t still = position;
    __atomic_compare_exchange_n(&head, &still, position + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (!is_mine) continue;
    slot->event = event;
    SetSequence(slot, position + 1);
    mark.Clear();
    return true;
  }
}

// The event's range with its site; without a stack, of one frame.
MappingRange Placed(const Event& event) {
  MappingRange range = event.range;
  if (range.site != 0) return range;
  if (IsAllocatorCode(event.pc)) range.flags |= format::kMappingAllocator;  // was not known then, perhaps
  EntryRegisters registers = {};
  registers.pc = event.pc;
  const uint64_t leaf = CaptureLeaf(registers);
  // An allocator's own caller is of no interest; any other's would be.
  const bool complete = (range.flags & format::kMappingAllocator) != 0;
  range.site = SiteIntern(&leaf, 1, format::kSiteMmap, complete ? 0u : format::kSiteTruncatedNested);
  return range;
}

// MS_ASYNC does nothing but look whether all of it is mapped.
bool IsMapped(uint64_t start, uint64_t end) {
  return IsSandboxed() ||
         RawSyscall(SYS_msync, static_cast<long>(start), static_cast<long>(end - start), MS_ASYNC) != -ENOMEM;
}

// Puts a piece back. A call that failed may have taken it away first, or a part of it: a small one is asked for page by
// page, a large one goes or stays by its first page.
void PutBack(const MappingRange& piece) {
  constexpr uint64_t kSmall = 512 * format::kPageBytes;
  const bool is_small = piece.end - piece.start <= kSmall;
  if (IsMapped(piece.start, is_small ? piece.end : piece.start + format::kPageBytes)) return MappingInsert(piece);
  if (!is_small) return;
  for (uint64_t at = piece.start; at < piece.end; at += format::kPageBytes) {
    MappingRange page = piece;
    page.start = at;
    page.end = at + format::kPageBytes < piece.end ? at + format::kPageBytes : piece.end;
    if (IsMapped(page.start, page.end)) MappingInsert(page);
  }
}

// What is as long as before, or shorter, may be several mappings with holes between them (Linux 6.17); what grows is a
// single one, that of the first piece.
void Move(const Event& event) {
  const MappingMove& move = event.move;
  MappingRange whole = Placed(event), piece;
  const bool grows = whole.end - whole.start > move.end - move.start;
  bool is_known = false;
  while (MappingTakeMarked(move.start, move.end, move.mark, &piece)) {
    if (move.stays) MappingInsert(piece);
    if (grows && is_known) continue;
    is_known = true;
    MappingRange moved = whole;
    moved.flags = piece.flags;
    moved.start += piece.start - move.start;
    if (!grows) moved.end = whole.start + (piece.end - move.start);
    if (moved.end > whole.end) moved.end = whole.end;
    if (moved.start < moved.end) MappingInsert(moved);
  }
  if (!is_known) MappingInsert(whole);
}

uint64_t ProtectEnd(const Event& event) {
  if (event.extent == ProtectExtent::kAll) return event.range.end;
  return MappingEndOfRun(event.range.start, event.range.end,
                         event.extent == ProtectExtent::kToFile ? format::kMappingFile : 0u);
}

void CarryOut(const Event& event) {
  const MappingRange& range = event.range;
  MappingRange piece;
  switch (event.kind) {
    case EventKind::kInsert:
      return MappingInsert(Placed(event));
    case EventKind::kRemove:
      return MappingRemove(range.start, range.end);
    case EventKind::kMark:
      return MappingMark(event.move.start, event.move.end, event.move.mark);
    case EventKind::kMarkSegment:
      if (MappingFind(event.move.start, &piece) && piece.start == event.move.start &&
          (piece.flags & format::kMappingSegment) != 0) {
        MappingMark(piece.start, piece.end, event.move.mark);
      }
      return;
    case EventKind::kGone:
      return MappingRemoveMarked(event.move.start, event.move.end, event.move.mark);
    case EventKind::kUnmark:
      while (MappingTakeMarked(event.move.start, event.move.end, event.move.mark, &piece)) PutBack(piece);
      return;
    case EventKind::kMove:
      return Move(event);
    case EventKind::kProtect:
      return MappingProtect(range.start, ProtectEnd(event), range.flags);
  }
}

bool IsWaiting() {
  const uint64_t position = __atomic_load_n(&tail, __ATOMIC_RELAXED);
  return SequenceOf(slots[position % kSlots]) == position + 1;
}

// Whoever carries out has lost its processor. It waits for nobody, so it may be waited for, unless it is this thread,
// interrupted by a signal.
bool MayWait() {
  return SessionIsRecording() && !IsSandboxed() && __atomic_load_n(&busy_thread, __ATOMIC_RELAXED) != ThreadPointer() &&
         __atomic_load_n(&stuck_at, __ATOMIC_RELAXED) != __atomic_load_n(&tail, __ATOMIC_RELAXED);
}

// Not for ever: it may have been cancelled, or may have left the hook by a longjmp. Then nobody waits for it again; a
// thread that uses that stack takes its work up (IsAbandoned).
template <typename Condition>
bool WaitUntil(Condition is_so) {
  const uint64_t before = __atomic_load_n(&tail, __ATOMIC_RELAXED);
  const uint64_t start_ns = MonotonicNow();
  for (int tries = 0; tries < kMostYields; tries++) {
    if (!MayWait()) return false;
    RawSyscall(SYS_sched_yield);
    MappingQueueDrain();
    if (is_so()) return true;
    if (tries >= kYields && MonotonicNow() - start_ns >= kPatienceNs) break;
  }
  if (__atomic_load_n(&tail, __ATOMIC_RELAXED) == before) __atomic_store_n(&stuck_at, before, __ATOMIC_RELAXED);
  return false;
}

void Post(const Event& event) {
  if (!Put(event) && !WaitUntil([&] { return Put(event); })) return CountLost();
  MappingQueueDrain();
}

// What was marked at `at` was work of this thread, and a signal handler has left it for good: it does not go on further
// down the stack.
bool IsAbandoned(const StackMark& mark, uint64_t at) {
  const ThreadState* thread = CurrentThreadState();
  return thread != nullptr && mark.SeesAbandoned(thread->thread_stack, at);
}

bool Exchange(uint64_t* word, uint64_t* from, uint64_t to) {
  return __atomic_compare_exchange_n(word, from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

// What was being carried out when it was left is lost.
void TakeUpAbandoned() {
  CountLost();
  MappingMapRepair();
  const uint64_t position = __atomic_load_n(&tail, __ATOMIC_RELAXED);
  if (SequenceOf(slots[position % kSlots]) == position + kSlots)
    __atomic_store_n(&tail, position + 1, __ATOMIC_RELEASE);
}

// Something is to be carried out. Claims that will never be filled are passed over.
bool FindsNext(const StackMark& mark) {
  while (!IsWaiting()) {
    const uint64_t position = __atomic_load_n(&tail, __ATOMIC_RELAXED);
    Slot* slot = &slots[position % kSlots];
    const uint64_t claim = __atomic_load_n(&slot->sequence_minus_index, __ATOMIC_ACQUIRE);
    if ((claim & kClaimed) == 0 || !IsAbandoned(mark, claim & ~kClaimed)) return IsWaiting();
    CountLost();
    SetSequence(slot, position + kSlots);
    __atomic_store_n(&tail, position + 1, __ATOMIC_RELEASE);
  }
  return true;
}

void CarryOutNext() {
  if (const uint64_t early = __atomic_exchange_n(&lost_early, 0, __ATOMIC_RELAXED))
    __atomic_fetch_add(&g_profile.header->counters.mapping_events_lost, early, __ATOMIC_RELAXED);
  const uint64_t position = tail;
  Slot* slot = &slots[position % kSlots];
  const Event event = slot->event;
  SetSequence(slot, position + kSlots);
  CarryOut(event);
  __atomic_store_n(&tail, position + 1, __ATOMIC_RELEASE);
}

}  // namespace

void MappingQueueDrain() {
  if (!SessionIsRecording()) return;
  StackMark mark;
  const uint64_t own = mark.Set();
  // Whoever finds `busy` taken leaves its event to the other, who looks again after giving `busy` back. Both exchanges
  // are full barriers: one of the two sees the event.
  do {
    uint64_t other = 0;
    bool is_mine = Exchange(&busy, &other, own);
    if (!is_mine && IsAbandoned(mark, other)) {
      is_mine = Exchange(&busy, &other, own);
      if (is_mine && SessionFileIsWhole()) TakeUpAbandoned();
    }
    if (!is_mine) break;
    __atomic_store_n(&busy_thread, ThreadPointer(), __ATOMIC_RELAXED);
    while (FindsNext(mark) && SessionFileIsWhole()) CarryOutNext();
    __atomic_store_n(&busy_thread, 0, __ATOMIC_RELAXED);
    __atomic_exchange_n(&busy, 0, __ATOMIC_SEQ_CST);
  } while (IsWaiting() && SessionIsRecording());
  mark.Clear();
}

void MappingPostInsert(const MappingRange& range, uint64_t pc) {
  Post({.kind = EventKind::kInsert, .range = range, .pc = pc});
}

void MappingPostRemove(uint64_t start, uint64_t end) { Post({.kind = EventKind::kRemove, .range = {start, end}}); }

uint64_t MappingPostMark(uint64_t start, uint64_t end) {
  const uint64_t mark = __atomic_fetch_add(&next_mark, 1, __ATOMIC_RELAXED);
  Post({.kind = EventKind::kMark, .move = {start, end, mark}});
  return mark;
}

uint64_t MappingPostMarkSegment(uint64_t address) {
  const uint64_t mark = __atomic_fetch_add(&next_mark, 1, __ATOMIC_RELAXED);
  Post({.kind = EventKind::kMarkSegment, .move = {address, address + 1, mark}});
  return mark;
}

void MappingPostGone(uint64_t start, uint64_t end, uint64_t mark) {
  Post({.kind = EventKind::kGone, .move = {start, end, mark}});
}

void MappingPostUnmark(uint64_t start, uint64_t end, uint64_t mark) {
  Post({.kind = EventKind::kUnmark, .move = {start, end, mark}});
  // What is mapped is asked when the event is carried out: the caller must not change it before.
  const uint64_t position = __atomic_load_n(&head, __ATOMIC_RELAXED);
  const auto is_carried_out = [&] { return __atomic_load_n(&tail, __ATOMIC_ACQUIRE) >= position; };
  if (!is_carried_out()) WaitUntil(is_carried_out);
}

void MappingPostMove(const MappingMove& move, const MappingRange& range, uint64_t pc) {
  Post({.kind = EventKind::kMove, .range = range, .pc = pc, .move = move});
}

void MappingPostProtect(uint64_t start, uint64_t end, uint32_t protection, ProtectExtent extent) {
  Post({.kind = EventKind::kProtect, .extent = extent, .range = {.start = start, .end = end, .flags = protection}});
}

}  // namespace cadastre
