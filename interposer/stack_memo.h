// What one thread's last walk has seen, so that the next one walks only as far as the stack has changed.
//
// A rule steps from (pc, sp, rbp) to the caller by reading one or two stack words, nothing else. So where a walk comes
// to a frame with the pc, sp and rbp of the last walk, and every word that the last walk read from there on still has
// its value, the rest of the stack is what it was: two loads and comparisons a frame instead of a look-up and a step.
// The words are read and compared each time; nothing is taken on trust. Code that could have been replaced under its
// addresses is asked for again (ConfirmedLibraries). Stacks that took more than plain rules (signal frames, libunwind,
// Java frames), were cut, or lie on memory that must be probed are not remembered.
//
// Layout: the remembered frames end at the array's end, root last, so that a walk which met the old stack replaces the
// frames before the meeting and leaves the rest in place.
// Zero bytes are a memo that remembers nothing. Thread- and signal-safety: one thread at a time, within the re-entry
// guard; a walk that never ends (longjmp out of a handler) leaves a memo that remembers nothing.
#ifndef CADASTRE_INTERPOSER_STACK_MEMO_H_
#define CADASTRE_INTERPOSER_STACK_MEMO_H_

#include <stdint.h>

#include "interposer/rule_cache.h"
#include "interposer/stack_capture.h"
#include "interposer/stack_memory.h"

namespace cadastre {

class StackMemo {
 public:
  static constexpr uint32_t kMost = kMaxFrames;  // deeper stacks are not remembered

  // A walk begins, on a thread's own stack that ends at `high`; 0 = on another one.
  void Begin(uint64_t high) {
    cursor_ = high == high_ && high != 0 && first_from_end_ != 0 ? kMost - first_from_end_ : kMost;
    former_ = not_before_ = cursor_;
    fresh_ = 0;
    first_from_end_ = 0;
    high_ = high;
    is_spoilt_ = high == 0;
    is_same_ = false;
  }

  // The walk stands before the step from a plain frame. True: the last walk stood here, so Rest may know what follows.
  __attribute__((always_inline)) bool Meets(uint64_t pc, uint64_t sp, uint64_t rbp) {
    while (cursor_ < kMost && frames_[cursor_].sp < sp) cursor_++;
    return cursor_ < kMost && frames_[cursor_].sp == sp && frames_[cursor_].pc == pc && frames_[cursor_].rbp == rbp &&
           cursor_ >= not_before_;
  }

  // After Meets: do the words still hold what leads to the root? `confirm(library, pc)` says whether a library that may
  // be unloaded still lies at pc. It is asked only about frames of which the words have been seen: what returns there
  // keeps the library, any other one may be unmapped at this moment. False: what has changed lies behind, and is met no
  // more.
  template <typename Confirm>
  bool HoldsFromHere(Confirm confirm) {
    for (uint32_t i = cursor_; i + 1 < kMost; i++) {
      const Frame& caller = frames_[i + 1];
      if (StackMemory::LoadChecked(caller.sp - 8) == caller.pc &&
          (frames_[i].rbp_at == 0 || StackMemory::LoadChecked(frames_[i].rbp_at) == caller.rbp))
        continue;
      not_before_ = i + 1;
      return false;
    }
    const bool holds =
        (root_sp_ == 0 || StackMemory::LoadChecked(root_sp_ - 8) == 0) &&
        ForEachLibrary(cursor_, [&](const Library& library) { return confirm(library.index, library.pc); });
    if (!holds) {
      not_before_ = kMost;
      Spoil();
    }
    return holds;
  }

  // The frame words from the meeting to the root, as many as there is room for. Returns how many there are.
  uint32_t Rest(uint64_t* words, uint32_t room) const { return CopyWords(cursor_, words, room); }

  // Likewise of the whole stack, where Keep has kept it.
  uint32_t Words(uint64_t* words, uint32_t room) const { return CopyWords(kMost - first_from_end_, words, room); }

  // The last walk met the one before at its first frame: the same stack as a whole.
  bool IsSameStack() const { return is_same_; }

  // A step by a plain rule has been taken from this frame. word: 0 = not recorded (our own code). rbp_at: where the
  // caller's rbp was read, 0 = unchanged.
  __attribute__((always_inline)) void Note(uint64_t pc, uint64_t sp, uint64_t rbp, uint64_t rbp_at,
                                           const CachedRule& rule) {
    if (fresh_ < kMost) {
      fresh_frames_[fresh_] = {
          pc, sp, rbp, rbp_at, rule.is_own_code() ? 0 : rule.frame, rule.is_permanent() ? 0 : rule.library(), 0};
    }
    fresh_++;
  }

  // This walk is not of the kind that can be remembered.
  void Spoil() { is_spoilt_ = true; }

  // The walk has come to its end, root_sp: sp after a last step that read a return address of 0; 0 = the last frame
  // needs no step. Or it has met the last walk (met): what was remembered from there on stays. False: this stack is
  // not remembered.
  bool Keep(bool met, uint64_t root_sp) {
    const uint32_t kept = met ? kMost - cursor_ : 0;
    if (is_spoilt_ || fresh_ + kept > kMost || fresh_ + kept == 0) {
      Forget();
      return false;
    }
    if (!met) root_sp_ = root_sp;
    is_same_ = met && fresh_ == 0 && cursor_ == former_;
    const uint32_t first = kMost - kept - fresh_;
    const bool keeps_library = kept != 0 && library_end_ > cursor_;
    if (!keeps_library) library_end_ = 0;
    for (uint32_t i = 0; i < fresh_; i++) {
      frames_[first + i] = fresh_frames_[i];
      if (!keeps_library && fresh_frames_[i].library != 0) library_end_ = first + i + 1;
    }
    asm volatile("" ::: "memory");
    first_from_end_ = fresh_ + kept;
    return true;
  }

  void Forget() {
    first_from_end_ = 0;
    is_same_ = false;
  }

  // The node (stack_tree.h) in which the last walk's stack ends, made by child(caller's node, frame word), which is
  // asked about new frames only. 0: nothing is remembered, or child has no room.
  template <typename Child>
  uint32_t Node(uint32_t root, Child child) {
    if (first_from_end_ == 0) return 0;
    const uint32_t first = kMost - first_from_end_;
    uint32_t i = first;
    while (i < kMost && frames_[i].node == 0) i++;
    uint32_t node = i < kMost ? frames_[i].node : root;
    while (i-- > first && node != 0) {
      if (frames_[i].word != 0) node = child(node, frames_[i].word);
      frames_[i].node = node;
    }
    return node;
  }

  // A library that may be unloaded, and a call in it; index 0 = none.
  struct Library {
    uint32_t index;
    uint64_t pc;
  };

  // What the last walk depended on beside its registers: each word that it read, leaf first, and the libraries. False:
  // nothing is remembered, `each` said so, or there are more than `room` libraries.
  template <typename Each>
  bool ForEachWord(Each each) const {
    if (first_from_end_ == 0) return false;
    for (uint32_t i = kMost - first_from_end_; i + 1 < kMost; i++) {
      const Frame& caller = frames_[i + 1];
      if (!each(caller.sp - 8, caller.pc)) return false;
      if (frames_[i].rbp_at != 0 && !each(frames_[i].rbp_at, caller.rbp)) return false;
    }
    return root_sp_ == 0 || each(root_sp_ - 8, 0);
  }
  bool CopyLibraries(Library* to, uint32_t room) const {
    uint32_t count = 0;
    const bool fits = ForEachLibrary(kMost - first_from_end_, [&](const Library& library) {
      for (uint32_t i = 0; i < count; i++) {
        if (to[i].index == library.index) return true;
      }
      if (count == room) return false;
      to[count++] = library;
      return true;
    });
    while (count < room) to[count++] = {0, 0};
    return fits;
  }

 private:
  struct Frame {
    uint64_t pc, sp, rbp, rbp_at, word;
    uint32_t library;  // that may be unloaded; 0 = it may not
    uint32_t node;     // of the stack from here to the root; 0 = not asked for yet
  };

  uint32_t CopyWords(uint32_t first, uint64_t* words, uint32_t room) const {
    uint32_t count = 0;
    for (uint32_t i = first; i < kMost; i++) {
      if (frames_[i].word == 0) continue;
      if (count < room) words[count] = frames_[i].word;
      count++;
    }
    return count;
  }

  // Of the frames from `first` to the root, one after the other alike only once, until `each` says false.
  template <typename Each>
  bool ForEachLibrary(uint32_t first, Each each) const {
    uint32_t last = 0;
    for (uint32_t i = first; i < library_end_; i++) {
      if (__builtin_expect(frames_[i].library == last || frames_[i].library == 0, 1)) continue;
      last = frames_[i].library;
      if (!each(Library{last, frames_[i].pc - 1})) return false;  // what is looked up is the call
    }
    return true;
  }

  uint64_t high_;             // of the stack that frames_ lie on
  uint64_t root_sp_;          // see Keep
  uint32_t first_from_end_;   // frames remembered; 0 = none
  uint32_t former_, cursor_;  // this walk: where the remembered frames begin, and the first that it has not passed
  uint32_t not_before_;       // frames before this one lead to words that have changed
  uint32_t fresh_;            // frames noted by this walk
  uint32_t library_end_;      // no remembered frame from here on lies in a library that may be unloaded
  bool is_spoilt_, is_same_;
  Frame fresh_frames_[kMost];
  Frame frames_[kMost];
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_STACK_MEMO_H_
