// Mapping events on their way into the mapping map, in order, without anybody waiting.
//
// A thread that maps or unmaps puts an event into a ring and then, if nobody else is at it, carries out all that is
// there. So a hook never waits for a lock: not under an allocator's own lock, not in a signal handler that interrupts
// the carrying out, not for a thread that has been stopped. Order is what keeps the map right: an event that takes a
// range out is put in (as a mark, until the kernel's answer) before the kernel unmaps it, one that brings a range in
// after the kernel has mapped it; so a range that another thread gets at once comes in after the old one went. (The
// ring is D. Vyukov's bounded multi-producer queue.)
//
// Events that come before there is a profile (an allocator's first mappings) stay in the ring until it is opened.
// Errors: where the ring is full and stays so although the processor was given away, the event is lost, counted in
// Counters::mapping_events_lost. Thread- and signal-safety: lock-free but for a full ring.
//
// Example (mremap):
//   const uint64_t mark = MappingPostMark(old_start, old_end);
//   if (real_mremap(...) == MAP_FAILED) MappingPostUnmark(old_start, old_end, mark);
#ifndef CADASTRE_INTERPOSER_MAPPING_QUEUE_H_
#define CADASTRE_INTERPOSER_MAPPING_QUEUE_H_

#include <stdint.h>

#include "interposer/mapping_map.h"

namespace cadastre {

// range.site == 0: no stack could be taken; the one frame `pc` will be the site.
void MappingPostInsert(const MappingRange& range, uint64_t pc);

// [start, end) is given back: no other thread can have got any of it (the break, the end of what shrinks).
void MappingPostRemove(uint64_t start, uint64_t end);

// [start, end) is about to be unmapped, replaced or moved, if the call succeeds. The answer names what lies there now.
uint64_t MappingPostMark(uint64_t start, uint64_t end);
// It has gone.
void MappingPostGone(uint64_t start, uint64_t end, uint64_t mark);
// It has stayed, or what of it is still mapped: a call that fails may have taken a part away first.
void MappingPostUnmark(uint64_t start, uint64_t end, uint64_t mark);
// It has come to `range`, each piece with its own flags; range.flags are for what nothing was known of. `stays`: it is
// mapped at the old place, too.
struct MappingMove {
  uint64_t start, end;  // the old place
  uint64_t mark;
  bool stays;
};
void MappingPostMove(const MappingMove& move, const MappingRange& range, uint64_t pc);

// Of [start, end): all, what lies before the first hole, or before the first hole or mapping of a file.
enum class ProtectExtent : uint32_t { kAll, kToHole, kToFile };
void MappingPostProtect(uint64_t start, uint64_t end, uint32_t protection, ProtectExtent extent);

// The System V segment attached at `address` is about to be detached: [address, address + 1) is then gone, or has
// stayed.
uint64_t MappingPostMarkSegment(uint64_t address);

// Carries out what is in the ring, if nobody else is at it and there is a profile.
void MappingQueueDrain();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_MAPPING_QUEUE_H_
