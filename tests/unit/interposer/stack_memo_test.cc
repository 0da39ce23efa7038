// What a thread remembers of its last stack, on a stack of made-up words: it may only ever say what a walk would find.
// That it does so for real stacks is stack_capture_oracle_test's and oracle_programs_test.py's to prove.
#include "interposer/stack_memo.h"

#include <vector>

#include "tests/support/catch.h"

using namespace cadastre;

namespace {

// Frames of 32 bytes each: return address on top, the caller's rbp below it.
class FakeStack {
 public:
  explicit FakeStack(size_t frames) : words_(frames * 4 + 4) {
    for (size_t i = 0; i < frames; i++) SetFrame(i, 0x1000 + i * 0x10, 0x9000 + i);
  }
  uint64_t high() const { return reinterpret_cast<uint64_t>(words_.data() + words_.size()); }
  uint64_t sp(size_t frame) const { return reinterpret_cast<uint64_t>(words_.data() + frame * 4); }
  uint64_t return_at(size_t frame) const { return sp(frame) + 24; }
  uint64_t rbp_at(size_t frame) const { return sp(frame) + 16; }
  // Of the frame's caller.
  void SetFrame(size_t frame, uint64_t pc, uint64_t rbp) {
    words_[frame * 4 + 3] = pc;
    words_[frame * 4 + 2] = rbp;
  }
  uint64_t pc_of_caller(size_t frame) const { return words_[frame * 4 + 3]; }
  uint64_t rbp_of_caller(size_t frame) const { return words_[frame * 4 + 2]; }

 private:
  std::vector<uint64_t> words_;
};

CachedRule RuleIn(uint32_t library, bool permanent, uint64_t word, bool own_code = false) {
  CachedRule rule;
  rule.SetOwner(library, permanent, own_code);
  rule.frame = word;
  return rule;
}

struct Outcome {
  std::vector<uint64_t> words;
  size_t stepped = 0;
  bool met = false;
};

constexpr uint32_t kPlugin = 7;

// A walk as CaptureStack does it: frames of `library_of` lie in libraries that may be unloaded (0: they may not).
template <typename LibraryOf, typename Confirm>
Outcome WalkFrom(StackMemo* memo, const FakeStack& stack, size_t frames, uint64_t leaf_pc, LibraryOf library_of,
                 Confirm confirm) {
  Outcome outcome;
  uint64_t pc = leaf_pc, rbp = 0x8fff;
  memo->Begin(stack.high());
  for (size_t i = 0; i < frames; i++) {
    if (memo->Meets(pc, stack.sp(i), rbp) && memo->HoldsFromHere(confirm)) {
      uint64_t rest[StackMemo::kMost];
      const uint32_t count = memo->Rest(rest, StackMemo::kMost);
      outcome.words.insert(outcome.words.end(), rest, rest + count);
      outcome.met = true;
      memo->Keep(true, 0);
      return outcome;
    }
    const uint32_t library = library_of(i);
    memo->Note(pc, stack.sp(i), rbp, stack.rbp_at(i), RuleIn(library, library == 0, pc + 1));
    outcome.words.push_back(pc + 1);
    outcome.stepped++;
    pc = stack.pc_of_caller(i);
    rbp = stack.rbp_of_caller(i);
  }
  memo->Keep(false, stack.return_at(frames - 1) + 8);
  return outcome;
}

Outcome WalkPlainly(StackMemo* memo, const FakeStack& stack, size_t frames, uint64_t leaf_pc) {
  return WalkFrom(
      memo, stack, frames, leaf_pc, [](size_t) { return 0; }, [](uint32_t, uint64_t) { return false; });
}

std::vector<uint64_t> Expected(const FakeStack& stack, size_t frames, uint64_t leaf_pc) {
  StackMemo fresh = {};
  return WalkPlainly(&fresh, stack, frames, leaf_pc).words;
}

}  // namespace

TEST_CASE("The same stack is met at its first frame", "[stack_memo]") {
  FakeStack stack(20);
  stack.SetFrame(19, 0, 0);
  StackMemo memo = {};
  CHECK(WalkPlainly(&memo, stack, 20, 0x500).stepped == 20);
  CHECK_FALSE(memo.IsSameStack());
  const Outcome again = WalkPlainly(&memo, stack, 20, 0x500);
  CHECK(again.stepped == 0);
  CHECK(again.words == Expected(stack, 20, 0x500));
  CHECK(memo.IsSameStack());
}

TEST_CASE("Only the frames that have changed are walked", "[stack_memo]") {
  FakeStack stack(20);
  stack.SetFrame(19, 0, 0);
  StackMemo memo = {};
  WalkPlainly(&memo, stack, 20, 0x500);
  const Outcome other_leaf = WalkPlainly(&memo, stack, 20, 0x501);
  CHECK(other_leaf.stepped == 1);
  CHECK(other_leaf.words == Expected(stack, 20, 0x501));
  CHECK_FALSE(memo.IsSameStack());
  for (size_t changed = 0; changed < 18; changed++) {
    stack.SetFrame(changed, 0x7000 + changed, 0x9000 + changed);
    const Outcome outcome = WalkPlainly(&memo, stack, 20, 0x501);
    INFO("return address of frame " << changed);
    CHECK(outcome.met);
    CHECK(outcome.stepped == changed + 2);
    CHECK(outcome.words == Expected(stack, 20, 0x501));
  }
  stack.SetFrame(5, stack.pc_of_caller(5), 0x1234);  // a saved rbp decides too
  const Outcome outcome = WalkPlainly(&memo, stack, 20, 0x501);
  CHECK(outcome.stepped == 7);
  CHECK(outcome.words == Expected(stack, 20, 0x501));
}

TEST_CASE("A root that has got a caller is no root", "[stack_memo]") {
  FakeStack stack(20);
  stack.SetFrame(9, 0, 0);
  StackMemo memo = {};
  WalkPlainly(&memo, stack, 10, 0x500);
  stack.SetFrame(9, 0x4444, 0);
  stack.SetFrame(19, 0, 0);
  const Outcome outcome = WalkPlainly(&memo, stack, 20, 0x500);
  CHECK_FALSE(outcome.met);
  CHECK(outcome.words == Expected(stack, 20, 0x500));
}

TEST_CASE("Another thread's stack, or one that must be probed, is not met", "[stack_memo]") {
  FakeStack one(20), other(20);
  one.SetFrame(19, 0, 0);
  other.SetFrame(19, 0, 0);
  StackMemo memo = {};
  WalkPlainly(&memo, one, 20, 0x500);
  CHECK_FALSE(WalkPlainly(&memo, other, 20, 0x500).met);
  memo.Begin(0);
  CHECK_FALSE(memo.Meets(0x500, other.sp(0), 0x8fff));
  memo.Note(0x500, other.sp(0), 0x8fff, 0, RuleIn(0, true, 1));
  memo.Keep(false, 0);
  CHECK_FALSE(memo.IsSameStack());
  CHECK_FALSE(WalkPlainly(&memo, other, 20, 0x500).met);
}

TEST_CASE("Code that was unloaded is not taken for what lay there", "[stack_memo]") {
  FakeStack stack(20);
  stack.SetFrame(19, 0, 0);
  StackMemo memo = {};
  auto in_plugin = [](size_t frame) { return frame == 3 ? kPlugin : 0u; };
  uint64_t asked = 0;
  auto loaded = [&](uint32_t library, uint64_t pc) {
    CHECK(library == kPlugin);
    asked = pc;
    return true;
  };
  WalkFrom(&memo, stack, 20, 0x500, in_plugin, loaded);
  CHECK(WalkFrom(&memo, stack, 20, 0x500, in_plugin, loaded).met);
  CHECK(asked == stack.pc_of_caller(2) - 1);
  auto unloaded = [](uint32_t, uint64_t) { return false; };
  CHECK(WalkFrom(&memo, stack, 20, 0x500, in_plugin, unloaded).stepped == 20);
  // Once it is walked with what lies there now, it is remembered again.
  WalkFrom(&memo, stack, 20, 0x500, in_plugin, loaded);
  CHECK(WalkFrom(&memo, stack, 20, 0x500, in_plugin, loaded).met);
}

TEST_CASE("Our own frames are stepped over and not named; a spoilt walk is forgotten", "[stack_memo]") {
  FakeStack stack(2);
  StackMemo memo = {};
  memo.Begin(stack.high());
  memo.Note(0x500, stack.sp(0), 1, 0, RuleIn(0, true, 11));
  memo.Note(stack.pc_of_caller(0), stack.sp(1), 1, 0, RuleIn(1, true, 12, /*own_code=*/true));
  memo.Keep(false, 0);
  memo.Begin(stack.high());
  REQUIRE(memo.Meets(0x500, stack.sp(0), 1));
  uint64_t words[StackMemo::kMost];
  CHECK(memo.Rest(words, StackMemo::kMost) == 1);
  CHECK(words[0] == 11);
  memo.Spoil();
  memo.Keep(true, 0);
  memo.Begin(stack.high());
  CHECK_FALSE(memo.Meets(0x500, stack.sp(0), 1));
}

TEST_CASE("What was met and what is new are one stack, as far as there is room", "[stack_memo]") {
  FakeStack stack(20);
  stack.SetFrame(19, 0, 0);
  StackMemo memo = {};
  WalkPlainly(&memo, stack, 20, 0x500);
  REQUIRE(WalkPlainly(&memo, stack, 20, 0x501).stepped == 1);
  const std::vector<uint64_t> expected = Expected(stack, 20, 0x501);
  std::vector<uint64_t> words(20);
  CHECK(memo.Words(words.data(), 20) == 20);
  CHECK(words == expected);
  std::vector<uint64_t> some(20);
  CHECK(memo.Words(some.data(), 7) == 20);
  CHECK(std::vector<uint64_t>(some.begin(), some.begin() + 7) ==
        std::vector<uint64_t>(expected.begin(), expected.begin() + 7));
  CHECK(some[7] == 0);
}

TEST_CASE("A stack as deep as one may be recorded is remembered", "[stack_memo]") {
  FakeStack stack(kMaxFrames);
  stack.SetFrame(kMaxFrames - 1, 0, 0);
  StackMemo memo = {};
  WalkPlainly(&memo, stack, kMaxFrames, 0x500);
  CHECK(WalkPlainly(&memo, stack, kMaxFrames, 0x501).stepped == 1);
}

TEST_CASE("A stack that is too deep is not remembered", "[stack_memo]") {
  FakeStack stack(StackMemo::kMost + 1);
  stack.SetFrame(StackMemo::kMost, 0, 0);
  StackMemo memo = {};
  CHECK(WalkPlainly(&memo, stack, StackMemo::kMost + 1, 0x500).stepped == StackMemo::kMost + 1);
  CHECK_FALSE(WalkPlainly(&memo, stack, StackMemo::kMost + 1, 0x500).met);
}

TEST_CASE("Nodes are asked for new frames only, and belong to the frames below them", "[stack_memo]") {
  FakeStack stack(6);
  stack.SetFrame(5, 0, 0);
  StackMemo memo = {};
  std::vector<uint64_t> asked;
  uint32_t next = 1;
  const auto node = [&] {
    asked.clear();
    return memo.Node(1, [&](uint32_t caller, uint64_t frame) {
      CHECK(caller == next);
      asked.push_back(frame);
      return ++next;
    });
  };
  CHECK(memo.Node(1, [](uint32_t, uint64_t) { return 5u; }) == 0);  // nothing is remembered
  std::vector<uint64_t> words = WalkPlainly(&memo, stack, 6, 0x500).words;
  CHECK(node() == 7);
  CHECK(asked == std::vector<uint64_t>(words.rbegin(), words.rend()));
  WalkPlainly(&memo, stack, 6, 0x500);
  CHECK(node() == 7);
  CHECK(asked.empty());
  words = WalkPlainly(&memo, stack, 6, 0x501).words;  // another leaf, called from the same frame
  next = 6;
  CHECK(node() == 7);
  CHECK(asked == std::vector<uint64_t>{words[0]});
  // Where there is no room for one, there is none for what it calls.
  WalkPlainly(&memo, stack, 6, 0x502);
  CHECK(memo.Node(1, [](uint32_t, uint64_t) { return 0u; }) == 0);
  CHECK(memo.Node(1, [](uint32_t, uint64_t) { return 9u; }) == 9);
}

TEST_CASE("A library that may be unloaded is asked for as long as a frame of it is remembered", "[stack_memo]") {
  FakeStack stack(20);
  stack.SetFrame(19, 0, 0);
  StackMemo memo = {};
  uint64_t asked = 0;
  const auto count = [&](uint32_t, uint64_t) {
    asked++;
    return true;
  };
  uint64_t leaf = 0x500;
  const auto walk = [&](size_t plugin_frame) {
    asked = 0;
    return WalkFrom(
        &memo, stack, 20, leaf++, [=](size_t frame) { return frame == plugin_frame ? kPlugin : 0u; }, count);
  };
  constexpr size_t kNowhere = 99;
  walk(10);
  for (int i = 0; i < 3; i++) {  // new leaves above it
    CHECK(walk(10).stepped == 1);
    CHECK(asked == 1);
  }
  stack.SetFrame(12, 0x7000, 0x9000);  // below it: walked anew, and no plugin is there now
  CHECK(walk(kNowhere).stepped == 14);
  CHECK(asked == 0);
  walk(kNowhere);
  CHECK(asked == 0);
  stack.SetFrame(3, 0x7100, 0x9100);  // above what is kept: one has come
  CHECK(walk(4).stepped == 5);
  CHECK(asked == 0);
  walk(4);
  CHECK(asked == 1);
}
