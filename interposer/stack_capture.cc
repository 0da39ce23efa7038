#include "interposer/stack_capture.h"

#include <sys/auxv.h>

#include "interposer/eh_frame.h"
#include "interposer/jvm/jvm.h"
#include "interposer/library_map.h"
#include "interposer/profile_format.h"
#include "interposer/rule_cache.h"
#include "interposer/stack_memo.h"
#include "interposer/stack_memory.h"
#include "interposer/stack_unwind.h"
#include "interposer/unwind_rules.h"

namespace cadastre {
namespace {

// Frames that are not recorded (our own) count as steps too, so a walk ends whatever it meets.
constexpr uint32_t kMaxSteps = 2 * kMaxFrames;
constexpr uint32_t kMaxSignalFrames = 16;
// Each time libunwind begins at the leaf again.
constexpr uint32_t kMaxLibrarySteps = 8;

// The libraries that the loader has confirmed during this walk; most stacks cross two or three.
class ConfirmedLibraries {
 public:
  bool Confirm(uint32_t index, uint64_t pc) {
    for (uint32_t known : known_) {
      if (known == index) {
        last_ = index;
        return true;
      }
    }
    if (!IsLibraryStillLoaded(index, pc)) return false;
    known_[next_++ % 4] = last_ = index;
    return true;
  }
  uint32_t last() const { return last_; }  // asked for; 0: none yet

 private:
  uint32_t last_ = 0;
  uint32_t known_[4] = {};
  uint32_t next_ = 0;
};

// The program interpreter that the kernel has loaded (none if the program was started as `ld.so ./program`).
bool IsProgramLoader(const LibraryEntry& library) {
  return library.eh_frame_hdr != nullptr && library.bias != 0 && library.bias == getauxval(AT_BASE);
}

// What is looked up is the call, not what follows it.
uint64_t LookupPc(uint64_t pc, bool exact) { return exact ? pc : pc - 1; }

__attribute__((noinline)) void FindRuleSlow(uint64_t pc, bool exact, ConfirmedLibraries* confirmed, CachedRule* found) {
  *found = CachedRule{};
  LibraryEntry library;
  // Not remembered either.
  if (JvmIsCode(pc)) return found->SetGeneratedJava();
  if (!LookupLibrary(LookupPc(pc, exact), &library, confirmed->last()) || library.index >= format::kFrameLibraryLimit) {
    // Not remembered: generated code comes and goes without notice.
    found->frame = format::MakeUnknownFrame(exact ? format::kFrameUnknownExact : format::kFrameUnknown, pc);
    return;
  }
  // Asked once more, and then no more for its other calls in this walk.
  if (!library.permanent) confirmed->Confirm(library.index, LookupPc(pc, exact));
  UnwindRule rule;
  FrameTable table;
  if (FindFrameTable(library, LookupPc(pc, exact), &table)) {
    rule = BuildUnwindRule(table, LookupPc(pc, exact));
  } else if (IsProgramLoader(library)) {
    // The one piece of the loader that has no entry is _start and _dl_start_user, where the kernel enters it: whole.
    rule.kind = kUnwindEnd;
  }
  // The trampoline's pc is the address that the kernel made the handler return to: nothing called from before it.
  const bool is_exact = exact || rule.kind == kUnwindSignal;
  found->SetRule(rule);
  found->frame =
      format::MakeLibraryFrame(is_exact ? format::kFrameExact : format::kFrameReturn, library.index, pc - library.bias);
  found->SetOwner(library.index, library.permanent, (library.flags & format::kLibraryIsCadastre) != 0);
  RuleCacheInsert(pc, exact, *found);
}

__attribute__((always_inline)) inline CachedRule FindRule(uint64_t pc, bool exact, ConfirmedLibraries* confirmed) {
  CachedRule cached;
  if (__builtin_expect(RuleCacheFind(pc, exact, &cached), 1)) {
    if (__builtin_expect(cached.is_permanent(), 1) || confirmed->Confirm(cached.library(), LookupPc(pc, exact))) {
      return cached;
    }
  }
  CachedRule found;
  FindRuleSlow(pc, exact, confirmed, &found);
  return found;
}

enum StepResult { kStepped, kStackEnded, kMemoryEnded, kUnknownEnded };

// Applies a rule that needs no more than rsp, rbp and the stack. *rbp_at: where rbp was read, 0 = it is unchanged.
__attribute__((always_inline)) inline StepResult StepByRule(const CachedRule& rule, StackMemory* memory,
                                                            StackFrame* frame, uint64_t* rbp_at) {
  const UnwindKind kind = rule.kind();
  const uint64_t base = kind == kUnwindFromRbp || kind == kUnwindRbpDeref ? frame->rbp : frame->sp;
  uint64_t cfa = base + static_cast<uint64_t>(rule.cfa_offset());
  if (__builtin_expect(kind >= kUnwindRspDeref, 0)) {
    if (!memory->Read(cfa, &cfa)) return kMemoryEnded;
    cfa += rule.cfa_addend();
  }
  // Progress: each frame lies above the one it called. This alone makes loops impossible.
  uint64_t pc, rbp = frame->rbp;
  if (__builtin_expect(cfa <= frame->sp, 0) || !memory->Read(cfa - 8, &pc)) return kMemoryEnded;
  if (rule.saved_rbp() != kRbpUnchanged) {
    const uint64_t from = rule.saved_rbp() == kRbpAtCfa ? cfa : frame->rbp;
    *rbp_at = from + static_cast<uint64_t>(rule.rbp_offset());
    if (!memory->Read(*rbp_at, &rbp)) return kMemoryEnded;
  }
  memory->Ascend(cfa);
  *frame = {pc, cfa, rbp, false};
  return pc == 0 ? kStackEnded : kStepped;
}

// Takes all frames that need nothing special: a remembered rule of the two usual kinds, in a library that is known to
// be there, on memory that is known to be the stack's. Stops in front of the first other one. Everything lives in
// processor registers, because each frame waits for the one before: pc → place in the cache → rule → CFA → pc. Returns
// the number of frames taken, all of them recorded. *met: the rest is as the memo has it.
template <bool kRemember>
__attribute__((always_inline)) inline uint32_t WalkFast(ConfirmedLibraries* confirmed, StackMemory* memory,
                                                        StackFrame* frame, uint64_t* frames, uint32_t room,
                                                        StackMemo* memo, bool* met) {
  const RuleCacheView cache;
  const uint64_t last_word = memory->high() - sizeof(uint64_t), confirmed_library = confirmed->last();
  uint64_t pc = frame->pc, sp = frame->sp, rbp = frame->rbp;
  if (frame->exact || !cache.is_there() || sp < memory->low()) return 0;
  uint32_t taken = 0;
  CachedRule rule;
  for (; taken < room; taken++) {
    if constexpr (kRemember) {
      if (memo->Meets(pc, sp, rbp) &&
          memo->HoldsFromHere([&](uint32_t library, uint64_t call) { return confirmed->Confirm(library, call); })) {
        *met = true;
        break;
      }
    }
    if (!cache.FindFirst(pc, &rule)) break;
    if (__builtin_expect(!rule.is_plainly_permanent() && rule.owner != confirmed_library, 0)) break;
    const bool from_rbp = rule.is_usual_from_rbp();
    if (__builtin_expect(!from_rbp && !rule.is_usual_from_rsp(), 0)) break;
    const uint64_t cfa = (from_rbp ? rbp : sp) + static_cast<uint64_t>(rule.cfa_offset());
    // A word above sp, aligned, and not beyond the end; what is wrong with another one the general step says.
    const uint64_t return_at = cfa - sizeof(uint64_t);
    if (__builtin_expect(return_at < sp || return_at > last_word || (cfa & 7) != 0, 0)) break;
    const uint64_t next = StackMemory::LoadChecked(return_at);
    if (__builtin_expect(next == 0, 0)) break;
    uint64_t rbp_at = 0, next_rbp = rbp;
    if (rule.saved_rbp() == kRbpAtCfa) {
      rbp_at = cfa + static_cast<uint64_t>(rule.rbp_offset());
      if (__builtin_expect(rbp_at < sp || rbp_at > last_word || (rbp_at & 7) != 0, 0)) break;
      next_rbp = StackMemory::LoadChecked(rbp_at);
    }
    if constexpr (kRemember) memo->Note(pc, sp, rbp, rbp_at, rule);
    frames[taken] = rule.frame;
    pc = next;
    sp = cfa;
    rbp = next_rbp;
  }
  if (taken != 0) {
    memory->Ascend(sp);
    *frame = {pc, sp, rbp, false};
  }
  return taken;
}

// The handler has returned to the trampoline: rsp points to the ucontext. The interrupted code may have run on another
// stack.
StepResult StepOverSignal(StackMemory* memory, StackFrame* frame) {
  StackFrame interrupted = {0, 0, 0, true};
  if (!memory->Read(frame->sp + kUcontextRip, &interrupted.pc) ||
      !memory->Read(frame->sp + kUcontextRsp, &interrupted.sp) ||
      !memory->Read(frame->sp + kUcontextRbp, &interrupted.rbp) || !memory->Switch(interrupted.sp)) {
    return kMemoryEnded;
  }
  *frame = interrupted;
  return kStepped;
}

__attribute__((noinline)) StepResult StepByLibrary(const EntryRegisters& registers, uint32_t steps, StackMemory* memory,
                                                   StackFrame* frame) {
  UnwoundFrame next;
  if (!StackUnwindStep(registers, steps, memory, &next)) return kUnknownEnded;
  if (next.pc == 0) return kStackEnded;
  if (next.exact) {
    if (!memory->Switch(next.sp)) return kMemoryEnded;
  } else {
    if (next.sp <= frame->sp) return kMemoryEnded;
    memory->Ascend(next.sp);
  }
  *frame = {next.pc, next.sp, next.rbp, next.exact};
  return kStepped;
}

// kStackEnded also where the rest cannot be had; *flags says so.
__attribute__((noinline)) StepResult StepOverJava(StackMemory* memory, StackFrame* frame, FrameList* list,
                                                  JavaWalk* java, uint32_t* flags) {
  switch (WalkJavaFrames(memory, frame, list, java)) {
    case JavaStep::kLeft:
      return kStepped;
    case JavaStep::kLost:
      return kUnknownEnded;
    case JavaStep::kEnded:
      return kStackEnded;
    case JavaStep::kContinuation:
      *flags |= format::kSiteTruncatedContinuation;
      return kStackEnded;
    case JavaStep::kFull:
      *flags |= format::kSiteTruncatedDepth;
      return kStackEnded;
  }
  return kUnknownEnded;
}

void SetDepth(FrameList* list, uint32_t wanted, uint32_t* flags) {
  list->count = wanted < list->capacity ? wanted : list->capacity;
  if (wanted > list->capacity) *flags |= format::kSiteTruncatedDepth;
}

// The walk from the leaf to the root, or as far as it can be had; *flags says so. True: the memo has met the stack and
// keeps it, and the list has only the frames before the meeting.
template <bool kRemember>
__attribute__((always_inline)) inline bool Walk(const EntryRegisters& registers, StackMemory* memory, FrameList* list,
                                                uint32_t* flags, StackMemo* memo) {
  StackFrame frame = {registers.pc, registers.sp, registers.rbp, false};
  ConfirmedLibraries confirmed;
  JavaWalk java;
  // Where libunwind begins, and how many steps ago that was.
  EntryRegisters origin = registers;
  uint32_t steps = 0, signal_frames = 0, library_steps = 0;
  for (uint32_t all_steps = 1; all_steps <= kMaxSteps; all_steps++) {
    bool met = false;
    const uint32_t taken = WalkFast<kRemember>(&confirmed, memory, &frame, list->frames + list->count,
                                               list->capacity - list->count, memo, &met);
    list->count += taken;
    steps += taken;
    all_steps += taken;
    if (kRemember && met) {
      if (memo->Keep(true, 0)) return true;
      SetDepth(list, list->count + memo->Rest(list->frames + list->count, list->capacity - list->count), flags);
      return false;
    }
    const CachedRule rule = FindRule(frame.pc, frame.exact, &confirmed);
    if (!rule.is_own_code() && !list->Add(rule.frame)) break;
    steps++;
    StepResult result = kUnknownEnded;
    const StackFrame from = frame;
    uint64_t rbp_at = 0;
    switch (rule.kind()) {
      case kUnwindRspDeref:
      case kUnwindRbpDeref:
        if constexpr (kRemember) memo->Spoil();
        [[fallthrough]];
      case kUnwindFromRsp:
      case kUnwindFromRbp:
        result = StepByRule(rule, memory, &frame, &rbp_at);
        if constexpr (kRemember) memo->Note(from.pc, from.sp, from.rbp, rbp_at, rule);
        break;
      case kUnwindEnd:
        if constexpr (kRemember) {
          memo->Note(from.pc, from.sp, from.rbp, 0, rule);
          memo->Keep(false, 0);
        }
        return false;
      case kUnwindSignal:
        if constexpr (kRemember) memo->Spoil();
        if (++signal_frames <= kMaxSignalFrames) result = StepOverSignal(memory, &frame);
        break;
      case kUnwindByLibrary:
        if constexpr (kRemember) memo->Spoil();
        if (++library_steps <= kMaxLibrarySteps) result = StepByLibrary(origin, steps, memory, &frame);
        break;
      case kUnwindJava:
        if constexpr (kRemember) memo->Spoil();
        result = StepOverJava(memory, &frame, list, &java, flags);
        if (result == kStackEnded) return false;
        origin = {frame.pc, frame.sp, frame.rbp, 0, 0, 0, 0, 0};
        steps = 0;
        break;
      case kUnwindNoTable:
        // An entry point without unwind tables is the stack's end all the same: nothing is missing.
        if (memory->IsAtTop(frame.sp)) return false;
        break;
    }
    if (__builtin_expect(result == kStepped, 1)) continue;
    if (result == kStackEnded) {
      if constexpr (kRemember) memo->Keep(false, frame.sp);
      return false;
    }
    if (SkipToJavaFrames(memory, &frame, &java)) {
      if constexpr (kRemember) memo->Spoil();
      *flags |= format::kSiteSkippedNative;
      continue;
    }
    *flags |= result == kMemoryEnded ? format::kSiteTruncatedMemory : format::kSiteTruncatedUnknownPc;
    return false;
  }
  *flags |= format::kSiteTruncatedDepth;
  return false;
}

// As Walk<true>.
bool Capture(const EntryRegisters& registers, const StackBounds& bounds, FrameList* list, uint32_t* flags,
             StackMemo* memo) {
  *flags = 0;
  if (list->capacity == 0) return false;
  StackMemory memory;
  if (!memory.Start(registers.sp, bounds)) {
    if (memo != nullptr) memo->Forget();
    *flags = format::kSiteTruncatedSmallStack;
    list->Add(CaptureLeaf(registers));
    return false;
  }
  if (memo == nullptr) return Walk<false>(registers, &memory, list, flags, nullptr);
  memo->Begin(memory.is_probing() ? 0 : memory.high());
  return Walk<true>(registers, &memory, list, flags, memo);
}

}  // namespace

uint64_t CaptureLeaf(const EntryRegisters& registers) {
  ConfirmedLibraries confirmed;
  return FindRule(registers.pc, false, &confirmed).frame;
}

uint32_t CaptureStack(const EntryRegisters& registers, const StackBounds& bounds, uint64_t* frames, uint32_t capacity,
                      uint32_t* flags, StackMemo* memo) {
  FrameList list = {frames, 0, capacity};
  if (Capture(registers, bounds, &list, flags, memo)) SetDepth(&list, memo->Words(frames, capacity), flags);
  return list.count;
}

bool CaptureInMemo(const EntryRegisters& registers, const StackBounds& bounds, uint64_t* frames, uint32_t* count,
                   uint32_t* flags, StackMemo* memo) {
  FrameList list = {frames, 0, kMaxFrames};
  const bool is_in_memo = Capture(registers, bounds, &list, flags, memo);
  *count = list.count;
  return is_in_memo;
}

void StackCaptureOpen() { RuleCacheInit(); }

void StackCaptureInit() {
  LibraryEntry own;
  const auto own_code = reinterpret_cast<uint64_t>(&StackCaptureInit);
  if (LookupLibrary(own_code, &own)) StackUnwindInit(LibraryPath(own.index));
}

}  // namespace cadastre
