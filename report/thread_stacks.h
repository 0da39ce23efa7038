// The stacks of a process's threads: where each lies, what of it is resident, and who created the thread.
//
// Threads that have ended are not listed, although the C library may keep their stacks for the next ones: those are the
// ledger's row "ended thread stacks". A thread whose stack is not known is listed without one: its start and end are 0.
// Units: bytes. Errors: none. Thread-safety: as Attribution.
//
// Example:
//   for (const ThreadStack& stack : ThreadStacks(memory, pieces, inputs)) total += stack.resident_bytes;
#ifndef CADASTRE_REPORT_THREAD_STACKS_H_
#define CADASTRE_REPORT_THREAD_STACKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/ledger_areas.h"

namespace cadastre {

struct StackRange {
  uint64_t start = 0, end = 0;
  uint32_t tid = 0;
  uint32_t thread = 0;  // index into Profile::threads; 0 = the profile does not know it
  bool ended = false;
};

// Those that the profile has, and where there is none those that a look into the process found.
std::vector<StackRange> StackRanges(const ProcessMemory& memory, const Profile* profile);

// Owned by who created the thread, else by a `thread:` rule.
LedgerUse StackUse(const StackRange& range, const ProcessMemory& memory, const LedgerInputs& inputs);

struct ThreadStack {
  uint32_t tid = 0;
  std::string name;  // whole where the profile has it, else the kernel's 15 bytes
  uint64_t start = 0, end = 0;
  uint64_t resident_bytes = 0, huge_bytes = 0;
  std::string owner, team;  // of the thread's creation; empty: not known
  bool guessed = false;
  // Who created it, leaf first, without libcadastre's own; empty: not recorded. Pointers live as long as the
  // Symbolizer.
  std::vector<const Frame*> created_by;
  int owner_frame = -1, telling_frame = -1;  // indices into created_by
};

// In order of resident bytes, greatest first.
std::vector<ThreadStack> ThreadStacks(const ProcessMemory& memory, const std::vector<LedgerPiece>& pieces,
                                      const LedgerInputs& inputs);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_THREAD_STACKS_H_
