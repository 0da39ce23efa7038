// Stacks of one thread that have been walked and have a site: most allocations of a loop come from a few of them.
//
// As in stack_memo.h a walk depends on nothing but the registers at its start and the words that it reads. So a stack
// is known by (pc, sp, rbp), and is the same as before where all of these words still have their values: one load and
// one comparison each, and no walk, no hash of frames and no search for the site. Code that may have been replaced is
// asked for again. A place is taken over when its stack has not helped some times in a row, so that a program whose
// every stack is another one does not pay for remembering them all. Zero bytes know nothing. Thread- and signal-safety:
// as StackMemo.
#ifndef CADASTRE_INTERPOSER_KNOWN_STACKS_H_
#define CADASTRE_INTERPOSER_KNOWN_STACKS_H_

#include <stdint.h>

#include "interposer/stack_capture.h"
#include "interposer/stack_memo.h"
#include "interposer/stack_memory.h"

namespace cadastre {

class KnownStacks {
 public:
  // The site of the stack that begins with these registers; 0 = walk. `high`: the end of the thread's own stack, on
  // which sp lies.
  template <typename Confirm>
  uint32_t Find(const EntryRegisters& registers, uint64_t high, uint32_t kind, Confirm confirm) {
    Stack* known = PlaceOf(registers);
    uint32_t count = known->words;
    if (known->pc != registers.pc || known->sp != registers.sp || known->rbp != registers.rbp || known->high != high ||
        known->kind != kind || count == 0 || count == kTooMany)
      return 0;
    for (uint32_t i = 0; i < count; i++) {
      if (StackMemory::LoadChecked(known->sp + known->offset[i]) != known->value[i]) return 0;
    }
    for (const StackMemo::Library& library : known->libraries) {
      if (library.index != 0 && !confirm(library.index, library.pc)) return 0;
    }
    known->strikes = 0;
    return known->site;
  }

  // After Find did not know it: `memo` has just walked it from these registers.
  void Add(const EntryRegisters& registers, uint64_t high, uint32_t kind, const StackMemo& memo, uint32_t site) {
    Stack* known = PlaceOf(registers);
    if (known->words != 0 && ++known->strikes < kStrikes) return;
    known->words = 0;
    asm volatile("" ::: "memory");  // who interrupts this for good leaves an empty place
    uint32_t words = 0;
    const bool fits =
        memo.CopyLibraries(known->libraries, kLibraries) && memo.ForEachWord([&](uint64_t address, uint64_t value) {
          if (words == kWords || address - registers.sp > UINT32_MAX) return false;
          known->offset[words] = static_cast<uint32_t>(address - registers.sp);
          known->value[words++] = value;
          return true;
        });
    if (!fits) {
      known->strikes = 0;
      known->words = kTooMany;
      return;
    }
    known->pc = registers.pc;
    known->sp = registers.sp;
    known->rbp = registers.rbp;
    known->high = high;
    known->site = site;
    known->kind = kind;
    known->strikes = 0;
    asm volatile("" ::: "memory");
    known->words = words;
  }

 private:
  static constexpr uint32_t kPlaces = 64, kWords = 56, kLibraries = 3, kStrikes = 8;
  static constexpr uint32_t kTooMany = kWords + 1;

  struct Stack {
    uint64_t pc, sp, rbp, high;
    uint32_t site, kind;
    uint32_t words;  // 0 = empty; kTooMany = taken by a stack that does not fit, so that it is not copied each time
    uint32_t strikes;
    StackMemo::Library libraries[kLibraries];
    uint64_t value[kWords];
    uint32_t offset[kWords];  // from sp
  };

  Stack* PlaceOf(const EntryRegisters& registers) {
    const uint64_t hash = (registers.pc ^ registers.sp << 20) * 0x9e3779b97f4a7c15ull;
    return &stacks_[hash >> 58];
  }
  static_assert(kPlaces == 1 << (64 - 58));

  Stack stacks_[kPlaces];
};

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_KNOWN_STACKS_H_
