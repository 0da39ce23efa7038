// Compares a captured stack with a slow, careful walk of the same stack by libunwind's local interface.
//
// Probe() stands for a hook: it takes the caller's registers as the real hooks do, captures with and without what the
// thread's last walks have seen (StackMemo, KnownStacks, StackTree), walks, compares and counts. Callable from
// anywhere, signal handlers too; a probe that comes while another one works on the same thread is not counted. Example:
// Probe();  ... PrintOracleCounts("omit-frame-pointer"); REQUIRE(oracle_counts.different * 1000
// <= oracle_counts.compared);
#ifndef CADASTRE_TESTS_UNIT_INTERPOSER_STACK_ORACLE_H_
#define CADASTRE_TESTS_UNIT_INTERPOSER_STACK_ORACLE_H_

#include <stdint.h>

#include <atomic>

#include "interposer/stack_capture.h"

struct OracleCounts {
  std::atomic<uint64_t> compared{0};  // stacks
  std::atomic<uint64_t> different{0};
  std::atomic<uint64_t> same{0};     // as the one before on that thread
  std::atomic<uint64_t> known{0};    // had been walked before on that thread (KnownStacks)
  std::atomic<uint64_t> in_tree{0};  // had a node with a site (StackTree)
  std::atomic<uint64_t> frames{0};
  std::atomic<uint64_t> exact_frames{0};  // frames that a signal interrupted
  std::atomic<uint64_t> cut{0};           // marked as truncated by us
  std::atomic<uint64_t> deepest{0};
};
extern OracleCounts oracle_counts;

extern "C" void Probe();
extern "C" void ProbeRegisters(const cadastre::EntryRegisters* registers);

// Prepares the library map and libunwind's private copy. Before any Probe.
void StartOracle(const char* own_path);
// What Probe() calls in place of the comparison; nullptr: the comparison again.
void SetProbe(void (*probe)(const cadastre::EntryRegisters*));
cadastre::StackBounds ThisThreadStack();
// The calling thread's stack, asked once per thread; not from a signal handler.
void NoteThreadStack();
void PrintOracleCounts(const char* what);

#endif  // CADASTRE_TESTS_UNIT_INTERPOSER_STACK_ORACLE_H_
