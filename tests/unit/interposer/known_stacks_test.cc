// Which stacks a thread knows: never one of which a word, a register or a library is another. That what it knows is
// what a walk finds, for real stacks, is stack_capture_oracle_test's and oracle_programs_test.py's to prove.
#include "interposer/known_stacks.h"

#include <vector>

#include "tests/support/catch.h"

using namespace cadastre;

namespace {

constexpr uint32_t kPlugin = 7, kKind = 1, kFrames = 10, kDeepFrames = 100;

// A stack of made-up words, 4 a frame: return address on top, the caller's rbp below it; and its walk.
struct FakeStack {
  std::vector<uint64_t> words;
  EntryRegisters registers = {};
  uint64_t high;

  explicit FakeStack(uint64_t frames = kFrames) : words(frames * 4) {
    for (uint64_t i = 0; i < frames; i++) {
      words[i * 4 + 3] = i + 1 == frames ? 0 : 0x1000 + i;
      words[i * 4 + 2] = 0x9000 + i;
    }
    registers.pc = 0x500;
    registers.sp = reinterpret_cast<uint64_t>(words.data());
    registers.rbp = 0x8fff;
    high = registers.sp + words.size() * 8;
  }

  // `plugin`: the frame that lies in a library which may be unloaded.
  void Walk(StackMemo* memo, uint32_t frames = kFrames, uint32_t plugin = 5) const {
    memo->Begin(high);
    uint64_t pc = registers.pc, rbp = registers.rbp, sp = registers.sp;
    for (uint32_t i = 0; i < frames; i++, sp += 32) {
      CachedRule rule;
      rule.SetOwner(i == plugin ? kPlugin : 0u, i != plugin, false);
      rule.frame = pc;
      memo->Note(pc, sp, rbp, sp + 16, rule);
      pc = words[i * 4 + 3];
      rbp = words[i * 4 + 2];
    }
    memo->Keep(false, sp);
  }
};

bool IsLoaded(uint32_t, uint64_t) { return true; }
bool IsUnloaded(uint32_t, uint64_t) { return false; }

struct Known {
  std::vector<KnownStacks> place = std::vector<KnownStacks>(1);
  KnownStacks* operator->() { return place.data(); }
};

}  // namespace

TEST_CASE("A stack that was walked has its site", "[known_stacks]") {
  FakeStack stack;
  Known known;
  StackMemo memo = {};
  CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 0);
  stack.Walk(&memo);
  known->Add(stack.registers, stack.high, kKind, memo, 33);
  CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 33);
}

TEST_CASE("Another word, register, kind, end or library is another stack", "[known_stacks]") {
  FakeStack stack;
  Known known;
  StackMemo memo = {};
  stack.Walk(&memo);
  known->Add(stack.registers, stack.high, kKind, memo, 33);
  for (uint32_t i = 0; i < kFrames; i++) {
    for (const uint32_t word : {i * 4 + 3, i * 4 + 2}) {
      // The last frame's saved rbp leads to no caller.
      if (word == kFrames * 4 - 2) continue;
      INFO("word " << word);
      stack.words[word] ^= 0x10;
      CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 0);
      stack.words[word] ^= 0x10;
    }
    stack.words[i * 4] ^= 0x10;  // a local variable
    CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 33);
  }
  for (uint64_t EntryRegisters::*changed : {&EntryRegisters::pc, &EntryRegisters::sp, &EntryRegisters::rbp}) {
    EntryRegisters other = stack.registers;
    other.*changed += 32;
    CHECK(known->Find(other, stack.high, kKind, IsLoaded) == 0);
  }
  CHECK(known->Find(stack.registers, stack.high + 4096, kKind, IsLoaded) == 0);
  CHECK(known->Find(stack.registers, stack.high, kKind + 1, IsLoaded) == 0);
  CHECK(known->Find(stack.registers, stack.high, kKind, IsUnloaded) == 0);
  CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 33);
}

TEST_CASE("What a walk did not remember is not known", "[known_stacks]") {
  FakeStack stack;
  Known known;
  StackMemo memo = {};
  memo.Begin(stack.high);
  memo.Spoil();
  memo.Keep(false, 0);
  known->Add(stack.registers, stack.high, kKind, memo, 33);
  CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 0);
}

TEST_CASE("A stack that is too deep is not known, and not tried each time", "[known_stacks]") {
  FakeStack deep(kDeepFrames);
  Known known;
  StackMemo memo = {};
  deep.Walk(&memo, kDeepFrames);
  known->Add(deep.registers, deep.high, kKind, memo, 33);
  CHECK(known->Find(deep.registers, deep.high, kKind, IsLoaded) == 0);
  // Its place is taken for a while, as one that is known would be: the same registers, and fewer frames.
  deep.words[(kFrames - 1) * 4 + 3] = 0;
  deep.Walk(&memo, kFrames);
  known->Add(deep.registers, deep.high, kKind, memo, 34);
  CHECK(known->Find(deep.registers, deep.high, kKind, IsLoaded) == 0);
  for (int turn = 0; turn < 20; turn++) known->Add(deep.registers, deep.high, kKind, memo, 34);
  CHECK(known->Find(deep.registers, deep.high, kKind, IsLoaded) == 34);
}

TEST_CASE("A place goes to another stack when its own does not come back", "[known_stacks]") {
  FakeStack stack;
  Known known;
  StackMemo memo = {};
  stack.Walk(&memo);
  known->Add(stack.registers, stack.high, kKind, memo, 33);
  stack.words[3] = 0x4444;  // the same registers, so the same place
  int turns = 0;
  for (; known->Find(stack.registers, stack.high, kKind, IsLoaded) == 0 && turns < 100; turns++) {
    stack.Walk(&memo);
    known->Add(stack.registers, stack.high, kKind, memo, 34);
  }
  CHECK(turns > 1);
  CHECK(turns < 20);
  CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 34);
  stack.words[3] = 0x1000;
  CHECK(known->Find(stack.registers, stack.high, kKind, IsLoaded) == 0);
}
