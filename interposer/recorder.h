// What happens to an allocation whose countdown ended, and to a free that met the filter: the slow path behind every
// hook.
//
// Thread- and signal-safety: any thread, any time after the real call succeeded. errno is never touched (system calls
// are raw). A nested call (a signal handler that allocates while its thread records) is counted and skipped; a nested
// free is not lost. Errors: what cannot be recorded is counted in the profile; the block is the caller's either way.
#ifndef CADASTRE_INTERPOSER_RECORDER_H_
#define CADASTRE_INTERPOSER_RECORDER_H_

#include <stdint.h>

#include "interposer/live_table.h"
#include "interposer/mapping_queue.h"
#include "interposer/stack_capture.h"

namespace cadastre {

// Room to capture stacks in, one piece for each thread buffer.
bool RecorderInit(uint32_t buffers);

// `pointer` has just been allocated with `bytes`; registers are the caller's.
void RecordAllocation(void* pointer, uint64_t bytes, const EntryRegisters& registers);

// [start, end) has just been mapped, or has moved there (mapping_queue.h). `flags` are format::MappingFlags.
void RecordMapping(uint64_t start, uint64_t end, uint32_t flags, const MappingMove* moved,
                   const EntryRegisters& registers);

// A thread is about to be created: its ThreadRecord (thread_table.h), which knows the caller's stack; 0 = none.
uint32_t RecordThreadCreation(const EntryRegisters& registers);

// `pointer` is about to be freed. True if it had been recorded; *removed (nullptr: not wanted) tells what, so that a
// failed realloc can put it back.
bool RecordFree(void* pointer, LiveSampleData* removed = nullptr);
void UndoFree(const LiveSampleData& removed);

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_RECORDER_H_
