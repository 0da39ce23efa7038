#include "tests/unit/interposer/stack_oracle.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "interposer/known_stacks.h"
#include "interposer/library_map.h"
#include "interposer/profile_format.h"
#include "interposer/stack_memo.h"
#include "interposer/stack_tree.h"
#include "interposer/stack_unwind.h"

using cadastre::EntryRegisters;
using cadastre::LibraryEntry;
using cadastre::StackBounds;
namespace format = cadastre::format;

OracleCounts oracle_counts;

// The registers of the caller as they are after the return, on the stack in the order of EntryRegisters.
asm(R"(
  .text
  .globl Probe
  .type Probe, @function
Probe:
  .cfi_startproc
  pushq %r15
  .cfi_adjust_cfa_offset 8
  pushq %r14
  .cfi_adjust_cfa_offset 8
  pushq %r13
  .cfi_adjust_cfa_offset 8
  pushq %r12
  .cfi_adjust_cfa_offset 8
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  leaq 56(%rsp), %rax
  pushq %rax
  .cfi_adjust_cfa_offset 8
  pushq 56(%rsp)
  .cfi_adjust_cfa_offset 8
  movq %rsp, %rdi
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call DispatchProbe
  addq $72, %rsp
  .cfi_adjust_cfa_offset -72
  ret
  .cfi_endproc
  .size Probe, .-Probe
)");

namespace {

constexpr int kShownDifferences = 5;
std::atomic<int> g_shown{0};

__thread StackBounds t_stack __attribute__((tls_model("initial-exec")));
__thread cadastre::StackMemo t_memo __attribute__((tls_model("initial-exec")));
// Too large for every thread's own memory: the first threads have one.
cadastre::KnownStacks g_known[16];
std::atomic<uint32_t> g_next_known{0};
__thread uint32_t t_known __attribute__((tls_model("initial-exec")));  // index + 1
cadastre::StackTree g_tree;
__thread int t_busy __attribute__((tls_model("initial-exec")));

std::atomic<void (*)(const EntryRegisters*)> g_probe{nullptr};

struct Walked {
  uint64_t pc[cadastre::kMaxFrames];
  bool exact[cadastre::kMaxFrames];
  uint32_t count = 0;
};

// mov $15, %rax; syscall: rt_sigreturn. Told by its code, so that the oracle owes nothing to the tables under test.
bool IsSignalTrampoline(uint64_t pc) {
  static const unsigned char kCode[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  LibraryEntry library;
  return cadastre::LookupLibrary(pc, &library) && memcmp(reinterpret_cast<const void*>(pc), kCode, sizeof(kCode)) == 0;
}

// From here outwards, recording from the frame whose registers the probe was given.
__attribute__((noinline)) void WalkSlowly(const EntryRegisters& registers, Walked* walked) {
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  if (unw_init_local(&cursor, &context) < 0) return;
  bool recording = false, after_signal = false;
  do {
    unw_word_t pc = 0, sp = 0;
    unw_get_reg(&cursor, UNW_REG_IP, &pc);
    unw_get_reg(&cursor, UNW_REG_SP, &sp);
    if (pc == 0) break;
    recording = recording || (pc == registers.pc && sp == registers.sp);
    const bool is_trampoline = IsSignalTrampoline(pc);
    if (recording) {
      walked->pc[walked->count] = pc;
      walked->exact[walked->count++] = after_signal || is_trampoline;
    }
    after_signal = is_trampoline;
  } while (walked->count < cadastre::kMaxFrames && unw_step(&cursor) > 0);
}

uint64_t FrameWord(uint64_t pc, bool exact) {
  LibraryEntry library;
  if (!cadastre::LookupLibrary(exact ? pc : pc - 1, &library)) {
    return format::MakeUnknownFrame(exact ? format::kFrameUnknownExact : format::kFrameUnknown, pc);
  }
  return format::MakeLibraryFrame(exact ? format::kFrameExact : format::kFrameReturn, library.index, pc - library.bias);
}

void ShowFrame(const char* who, uint32_t index, uint64_t word) {
  char line[600];
  int bytes = snprintf(line, sizeof(line), "  %s %2u %lx %s+0x%lx\n", who, index, format::FrameTagOf(word),
                       cadastre::LibraryPath(static_cast<uint32_t>(format::FrameLibraryOf(word))),
                       format::FrameAddressOf(word));
  if (write(2, line, static_cast<size_t>(bytes)) < 0) return;
}

void ShowDifference(const uint64_t* frames, uint32_t count, uint32_t flags, const Walked& walked) {
  if (g_shown.fetch_add(1) >= kShownDifferences) return;
  char line[100];
  int bytes =
      snprintf(line, sizeof(line), "stacks differ: %u frames (flags %u), libunwind %u\n", count, flags, walked.count);
  if (write(2, line, static_cast<size_t>(bytes)) < 0) return;
  for (uint32_t i = 0; i < count || i < walked.count; i++) {
    uint64_t theirs = i < walked.count ? FrameWord(walked.pc[i], walked.exact[i]) : 0;
    if (i < count && i < walked.count && frames[i] == theirs) {
      ShowFrame("both", i, theirs);
      continue;
    }
    if (i < count) ShowFrame("ours", i, frames[i]);
    if (i < walked.count) ShowFrame("unw ", i, theirs);
  }
}

// What stands for a site: a number that two different stacks do not share.
uint32_t NumberOf(const uint64_t* frames, uint32_t count) {
  uint64_t hash = count;
  for (uint32_t i = 0; i < count; i++) hash = (hash ^ frames[i]) * 0xff51afd7ed558ccdull ^ hash >> 29;
  return static_cast<uint32_t>(hash >> 32) | 1;
}

// Does the node of the stack that t_memo has just seen say the same? Asked of each stack, so that nodes are made and
// met as they are where every allocation is recorded.
bool TreeAgrees(const uint64_t* frames, uint32_t count, uint32_t flags) {
  const uint32_t node = t_memo.Node(cadastre::StackTree::kRoot,
                                    [](uint32_t caller, uint64_t frame) { return g_tree.Child(caller, frame); });
  if (node == 0) return true;
  if (flags != 0) return false;  // what was cut is not remembered
  const uint32_t number = NumberOf(frames, count), found = g_tree.site(node);
  if (found != 0) oracle_counts.in_tree++;
  g_tree.SetSite(node, number);
  return found == 0 || found == number;
}

// Does what the thread knows of its stacks say the same? `frames` are what t_memo has just seen.
bool KnownAgrees(const EntryRegisters& registers, const uint64_t* frames, uint32_t count) {
  if (t_known == 0) t_known = g_next_known++ + 1;
  if (t_known > 16 || t_stack.low == 0 || registers.sp < t_stack.low || registers.sp >= t_stack.high) return true;
  cadastre::KnownStacks* known = &g_known[t_known - 1];
  const uint32_t number = NumberOf(frames, count);
  const uint32_t found = known->Find(registers, t_stack.high, 0, cadastre::IsLibraryStillLoaded);
  if (found != 0) oracle_counts.known++;
  if (found == 0) known->Add(registers, t_stack.high, 0, t_memo, number);
  return found == 0 || found == number;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) void DispatchProbe(const EntryRegisters* registers) {
  auto* probe = g_probe.load();
  probe != nullptr ? probe(registers) : ProbeRegisters(registers);
}

extern "C" void ProbeRegisters(const EntryRegisters* registers) {
  if (t_busy) return;
  t_busy = 1;
  uint64_t frames[cadastre::kMaxFrames];
  uint32_t flags = 0;
  uint32_t count = cadastre::CaptureStack(*registers, t_stack, frames, cadastre::kMaxFrames, &flags);
  uint64_t frames_again[cadastre::kMaxFrames];
  uint32_t flags_again = 0;
  const uint32_t count_again =
      cadastre::CaptureStack(*registers, t_stack, frames_again, cadastre::kMaxFrames, &flags_again, &t_memo);
  Walked walked;
  WalkSlowly(*registers, &walked);
  // Where there is no unwind table libunwind guesses on by frame pointer; we end the stack there, marked. All before it
  // must be equal.
  const bool cut = (flags & format::kSiteTruncatedUnknownPc) != 0 && count < walked.count;
  bool equal = (count == walked.count || cut) && count_again == count && flags_again == flags &&
               memcmp(frames_again, frames, count * sizeof(frames[0])) == 0 && KnownAgrees(*registers, frames, count) &&
               TreeAgrees(frames, count, flags);
  uint32_t exact = 0;
  for (uint32_t i = 0; i < count && equal; i++) {
    equal = frames[i] == FrameWord(walked.pc[i], walked.exact[i]);
    exact += walked.exact[i];
  }
  oracle_counts.compared++;
  oracle_counts.frames += count;
  oracle_counts.exact_frames += exact;
  if (flags != 0) oracle_counts.cut++;
  if (t_memo.IsSameStack()) oracle_counts.same++;
  uint64_t deepest = oracle_counts.deepest;
  while (count > deepest && !oracle_counts.deepest.compare_exchange_weak(deepest, count)) {
  }
  if (!equal) {
    oracle_counts.different++;
    ShowDifference(frames, count, flags, walked);
  }
  t_busy = 0;
}

void StartOracle(const char* own_path) {
  cadastre::LibraryMapInit("");
  g_tree.Init(1 << 20);
  if (own_path != nullptr) {
    cadastre::StackUnwindInit(own_path);
  } else {
    cadastre::StackCaptureInit();
  }
}

StackBounds ThisThreadStack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {0, 0};
  void* low;
  size_t bytes;
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<uint64_t>(low), reinterpret_cast<uint64_t>(low) + bytes};
}

void NoteThreadStack() { t_stack = ThisThreadStack(); }

void SetProbe(void (*probe)(const EntryRegisters*)) { g_probe = probe; }

void PrintOracleCounts(const char* what) {
  char line[300];
  int bytes = snprintf(line, sizeof(line),
                       "oracle %s: %lu stacks, %lu different, %lu the same as before, %lu known, %lu in the tree, %lu "
                       "frames (%lu interrupted), "
                       "%lu cut, deepest %lu, "
                       "libunwind %s\n",
                       what, oracle_counts.compared.load(), oracle_counts.different.load(), oracle_counts.same.load(),
                       oracle_counts.known.load(), oracle_counts.in_tree.load(), oracle_counts.frames.load(),
                       oracle_counts.exact_frames.load(), oracle_counts.cut.load(), oracle_counts.deepest.load(),
                       cadastre::StackUnwindPrepare() ? "yes" : "no");
  if (write(2, line, static_cast<size_t>(bytes)) < 0) return;
}
