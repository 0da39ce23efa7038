// What a walk does where it cannot go on, or not in the usual way: every such stack must end early, marked, without
// touching memory that is not the stack's. And the promise of the header: how much stack a capture itself uses.
#include "interposer/stack_capture.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include <functional>
#include <thread>
#include <vector>

#include "interposer/library_map.h"
#include "interposer/profile_format.h"
#include "interposer/stack_unwind.h"
#include "tests/support/catch.h"
#include "tests/unit/interposer/stack_oracle.h"

using namespace cadastre;

namespace {

struct Captured {
  std::vector<uint64_t> frames;
  uint32_t flags = 0;
  EntryRegisters registers = {};
};
Captured g_captured;
StackBounds g_bounds;

void StartOnce() {
  static bool started = false;
  if (!started) StartOracle(CADASTRE_PRIVATE_UNWIND);
  started = true;
  g_bounds = ThisThreadStack();
}

}  // namespace

extern "C" __attribute__((noinline)) void CaptureHere(const EntryRegisters* registers) {
  uint64_t frames[kMaxFrames];
  uint32_t count = CaptureStack(*registers, g_bounds, frames, kMaxFrames, &g_captured.flags);
  g_captured.frames.assign(frames, frames + count);
  g_captured.registers = *registers;
}

// A function that keeps its frame in rbx, as ld.so's resolver does, and calls; its caller-saved state is recorded by
// CFI. And one without any CFI that sets rbp to its argument, as JIT-like assembly does.
asm(R"(
  .text
  .globl CallFromRbxFrame
  .type CallFromRbxFrame, @function
CallFromRbxFrame:
  .cfi_startproc
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset rbx, 0
  movq %rsp, %rbx
  .cfi_def_cfa_register rbx
  andq $-64, %rsp
  subq $128, %rsp
  call *%rdi
  movq %rbx, %rsp
  .cfi_def_cfa_register rsp
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore rbx
  ret
  .cfi_endproc
  .size CallFromRbxFrame, .-CallFromRbxFrame

  # EnterWithoutTable(stack top, function): what an entry point without CFI is, on a stack of its own.
  .globl CallWithoutTable
  .type CallWithoutTable, @function
CallWithoutTable:
  pushq %rbp
  pushq %rbx
  subq $8, %rsp
  movq %rsp, %rbx
  movq %rdi, %rbp
  call *%rsi
  movq %rbx, %rsp
  addq $8, %rsp
  popq %rbx
  popq %rbp
  ret
  .size CallWithoutTable, .-CallWithoutTable

  .globl EnterWithoutTable
  .type EnterWithoutTable, @function
EnterWithoutTable:
  pushq %rbx
  movq %rsp, %rbx
  movq %rdi, %rsp
  call *%rsi
  movq %rbx, %rsp
  popq %rbx
  ret
  .size EnterWithoutTable, .-EnterWithoutTable
)");
extern "C" void CallFromRbxFrame(void (*)());
extern "C" void CallWithoutTable(void* rbp, void (*)());
extern "C" void EnterWithoutTable(void* top, void (*)());

namespace {

void ProbeAndCapture() {
  SetProbe(CaptureHere);
  Probe();
  SetProbe(nullptr);
  asm volatile("");
}
__attribute__((noinline)) int Recurse(int depth) {
  if (depth == 0) {
    ProbeAndCapture();
    return 0;
  }
  int result = Recurse(depth - 1);
  asm volatile("" : "+r"(result));
  return result + 1;
}

}  // namespace

TEST_CASE("A frame that no rule expresses is stepped over by libunwind, and the walk goes on") {
  StartOnce();
  REQUIRE(StackUnwindPrepare());
  uint64_t before = oracle_counts.compared, different = oracle_counts.different;
  CallFromRbxFrame(Probe);  // compares
  CallFromRbxFrame([] {
    CallFromRbxFrame([] {
      Probe();
      asm volatile("");
    });
    asm volatile("");
  });
  CallFromRbxFrame([] {  // a frame below it with a personality routine: its table says where in writable memory
    std::vector<int> cleaned_up(10);
    Probe();
    cleaned_up.push_back(1);
  });
  CHECK(oracle_counts.compared == before + 3);
  CHECK(oracle_counts.different == different);
  CHECK(oracle_counts.cut == 0);
  CallFromRbxFrame(ProbeAndCapture);
  CHECK(g_captured.flags == 0);
  const std::vector<uint64_t> known = g_captured.frames;
  g_bounds = {0, 0};  // libunwind begins at the leaf again, below what the walk has left behind
  CallFromRbxFrame(ProbeAndCapture);
  g_bounds = ThisThreadStack();
  CHECK(g_captured.flags == 0);
  CHECK(g_captured.frames.size() == known.size());
}

TEST_CASE("Code without unwind tables ends the stack, whatever rbp holds") {
  StartOnce();
  void* hole = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* self[2] = {self, nullptr};
  char heap[64];
  memset(heap, 0x77, sizeof(heap));
  for (void* rbp : {static_cast<void*>(nullptr), reinterpret_cast<void*>(1), reinterpret_cast<void*>(-1L), hole,
                    static_cast<void*>(self), static_cast<void*>(heap), static_cast<void*>(heap + 3)}) {
    CallWithoutTable(rbp, ProbeAndCapture);
    CHECK(g_captured.flags == format::kSiteTruncatedUnknownPc);
    CHECK(g_captured.frames.size() == 2);
    CHECK(format::FrameTagOf(g_captured.frames.back()) == format::kFrameReturn);
  }
  munmap(hole, 8192);
}

TEST_CASE("An entry point without unwind tables is the end of a whole stack, where no caller fits above it") {
  StartOnce();
  constexpr uint64_t kBytes = 256 << 10;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const uint64_t low = reinterpret_cast<uint64_t>(memory);
  const StackBounds own = g_bounds;
  g_bounds = {low, low + kBytes};
  for (uint64_t pushed : {0, 16, 32, 48, 512}) {
    EnterWithoutTable(reinterpret_cast<void*>(g_bounds.high - pushed), ProbeAndCapture);
    CHECK(g_captured.flags == (pushed <= 32 ? 0u : format::kSiteTruncatedUnknownPc));
    CHECK(g_captured.frames.size() == 2);
  }
  g_bounds = {0, 0};  // where the stack ends is not known: nothing is taken for granted
  EnterWithoutTable(reinterpret_cast<void*>(low + kBytes), ProbeAndCapture);
  CHECK(g_captured.flags == format::kSiteTruncatedUnknownPc);
  g_bounds = own;
  munmap(memory, kBytes);
}

TEST_CASE("Generated code is recorded as unknown and ends the stack, also when other code lies there the next time") {
  StartOnce();
  const unsigned char with_frame[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  const unsigned char without[] = {0x48, 0x83, 0xec, 0x48, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x48, 0xc3};
  for (int round = 0; round < 4; round++) {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, round % 2 ? without : with_frame, round % 2 ? sizeof(without) : sizeof(with_frame));
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    reinterpret_cast<void (*)(void (*)())>(page)(ProbeAndCapture);
    munmap(page, 4096);
    CHECK(g_captured.flags == format::kSiteTruncatedUnknownPc);
    REQUIRE(g_captured.frames.size() == 2);
    CHECK(format::FrameTagOf(g_captured.frames.back()) == format::kFrameUnknown);
    CHECK((g_captured.frames.back() & format::kFramePayloadMask) - reinterpret_cast<uint64_t>(page) < 16);
  }
}

TEST_CASE("A stack deeper than the limit keeps its leaf side and says so") {
  StartOnce();
  Recurse(100);
  CHECK(g_captured.flags == 0);
  const size_t whole = g_captured.frames.size();
  CHECK(whole > 100);
  CHECK(whole < kMaxFrames);
  Recurse(1000);
  CHECK(g_captured.flags == format::kSiteTruncatedDepth);
  CHECK(g_captured.frames.size() == kMaxFrames);
}

TEST_CASE("A stack exactly as deep as the limit is whole") {
  StartOnce();
  Recurse(1);
  const int other_frames = static_cast<int>(g_captured.frames.size()) - 1;
  Recurse(static_cast<int>(kMaxFrames) - other_frames);
  CHECK(g_captured.frames.size() == kMaxFrames);
  CHECK(g_captured.flags == 0);
}

TEST_CASE("With little stack left only the leaf is taken") {
  StartOnce();
  ProbeAndCapture();
  EntryRegisters registers = g_captured.registers;
  uint64_t frames[kMaxFrames];
  uint32_t flags = 0;
  const StackBounds small = {registers.sp - 8191, g_bounds.high}, enough = {registers.sp - 8192, g_bounds.high};
  CHECK(CaptureStack(registers, small, frames, kMaxFrames, &flags) == 1);
  CHECK(flags == format::kSiteTruncatedSmallStack);
  CHECK(frames[0] == g_captured.frames[0]);
  CHECK(CaptureLeaf(registers) == frames[0]);
  CaptureStack(registers, enough, frames, kMaxFrames, &flags);
  CHECK((flags & format::kSiteTruncatedSmallStack) == 0);
}

TEST_CASE("Reads stop at the upper bound") {
  StartOnce();
  SetProbe([](const EntryRegisters* registers) {
    const StackBounds all = g_bounds;
    g_bounds.high = (registers->sp & ~15ull) + 512;
    CaptureHere(registers);
    g_bounds = all;
  });
  [](int depth) {
    auto recurse = [](auto&& self, int left) -> int {
      if (left == 0) {
        Probe();
        return 0;
      }
      int result = self(self, left - 1);
      asm volatile("" : "+r"(result));
      return result + 1;
    };
    recurse(recurse, depth);
  }(100);
  SetProbe(nullptr);
  CHECK(g_captured.flags == format::kSiteTruncatedMemory);
  CHECK(g_captured.frames.size() >= 2);
  CHECK(g_captured.frames.size() <= 512 / 16);
}

TEST_CASE("A stack whose bounds are not known is probed, and gives the same frames") {
  StartOnce();
  auto known = [] {
    Recurse(50);
    return g_captured;
  };
  Captured with_bounds = known();
  g_bounds = {0, 0};
  Captured without = known();
  g_bounds = ThisThreadStack();
  CHECK(without.flags == 0);
  CHECK(std::vector<uint64_t>(without.frames.begin(), without.frames.begin() + 51) ==
        std::vector<uint64_t>(with_bounds.frames.begin(), with_bounds.frames.begin() + 51));
}

TEST_CASE("Registers that are all rubbish give the leaf and no fault") {
  StartOnce();
  uint64_t state = 1;
  for (int i = 0; i < 20000; i++) {
    uint64_t words[8];
    for (uint64_t& word : words) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      word = i % 3 == 0 ? state : (state >> 17) & 0x7fffffffffff;
    }
    EntryRegisters registers;
    memcpy(&registers, words, sizeof(registers));
    if (i % 2) registers.pc = reinterpret_cast<uint64_t>(&Recurse) + state % 64;
    uint64_t frames[kMaxFrames];
    uint32_t flags = 0;
    // Usually marked; where rubbish points to readable zeros the stack ends there as if whole.
    CHECK(CaptureStack(registers, i % 4 ? StackBounds{0, 0} : g_bounds, frames, kMaxFrames, &flags) >= 1);
  }
}

TEST_CASE("Stack words that are all rubbish end the walk inside the stack") {
  StartOnce();
  std::vector<uint64_t> stack(4096);
  const StackBounds bounds = {reinterpret_cast<uint64_t>(stack.data()),
                              reinterpret_cast<uint64_t>(stack.data() + stack.size())};
  Recurse(5);
  EntryRegisters registers = g_captured.registers;
  uint64_t state = 3;
  for (int i = 0; i < 20000; i++) {
    for (size_t at = 2000; at < stack.size(); at++) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      uint64_t in_stack = bounds.low + (state >> 20) % (8 * stack.size());
      uint64_t in_code = reinterpret_cast<uint64_t>(&Recurse) + (state >> 20) % 4096;
      stack[at] = state % 3 == 0 ? state : state % 3 == 1 ? in_stack : in_code;
    }
    registers.sp = reinterpret_cast<uint64_t>(&stack[2000 + i % 500]);
    registers.rbp = bounds.low + (state >> 30) % (8 * stack.size());
    uint64_t frames[kMaxFrames];
    uint32_t flags = 0;
    CHECK(CaptureStack(registers, bounds, frames, kMaxFrames, &flags) >= 1);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)

namespace {

constexpr uint64_t kPaint = 0xa5a5c3c35a5a3c3cull;
constexpr size_t kPainted = 24 << 10;

uint64_t g_used;

// How far below the registers' sp the capture wrote. The painted words lie below this function's own frame.
extern "C" __attribute__((noinline)) void MeasureHere(const EntryRegisters* registers) {
  uint64_t here;
  asm volatile("mov %%rsp, %0" : "=r"(here));
  static uint64_t frames[kMaxFrames];
  static uint32_t flags;
  volatile uint64_t* top = reinterpret_cast<volatile uint64_t*>(here) - 16;
  for (size_t i = 0; i < kPainted / 8; i++) top[-static_cast<long>(i)] = kPaint;
  CaptureStack(*registers, g_bounds, frames, kMaxFrames, &flags);
  size_t lowest = 0;
  for (size_t i = 0; i < kPainted / 8; i++) {
    if (top[-static_cast<long>(i)] != kPaint) lowest = i;
  }
  g_used = lowest * 8 + 128;
}

}  // namespace

TEST_CASE("A capture uses at most 3 KiB of stack when warm and 6 KiB when cold") {
  StartOnce();
  auto measure = [](const std::function<void()>& call) {
    SetProbe(MeasureHere);
    call();
    SetProbe(nullptr);
    return g_used;
  };
  // A probe from here has not been seen before: every pc of it that is new is cold.
  uint64_t cold = measure([] {
    Probe();
    asm volatile("");
  });
  uint64_t through_library_cold = measure([] {
    CallFromRbxFrame([] {
      Probe();
      asm volatile("");
    });
  });
  uint64_t warm = 0;
  auto again = [&warm, &measure] {
    warm = measure([] {
      Probe();
      asm volatile("");
    });
  };
  for (int i = 0; i < 3; i++) again();
  WARN("stack used: warm " << warm << ", cold " << cold << ", with libunwind " << through_library_cold << " bytes");
  CHECK(warm <= 3 << 10);
  CHECK(cold <= 6 << 10);
  CHECK(through_library_cold <= 6 << 10);
}

#endif
