// The mapping map: which address ranges the program has mapped, each with who asked for it. Ranges never overlap; a
// range that is overlaid, cut or protected in part is split, and neighbours that say the same are joined again.
//
// A skip list in private memory, ordered by address; every range is also a record of the profile
// (format::MappingRecord), of the same index. (W. Pugh: Skip Lists: A Probabilistic Alternative to Balanced Trees, CACM
// 33(6), 1990.) Exact for what it is told; what no hook sees is for the reader to reconcile with /proc/PID/smaps.
//
// Units: bytes, addresses. Errors: where there is no room for a range it is forgotten and counted
// (Counters::mappings_full). Thread-safety: one caller at a time (mapping_queue.h sees to that). No system call but the
// profile's growth, no allocation; small, constant stack use.
#ifndef CADASTRE_INTERPOSER_MAPPING_MAP_H_
#define CADASTRE_INTERPOSER_MAPPING_MAP_H_

#include <stdint.h>

namespace cadastre {

struct MappingRange {
  uint64_t start, end;  // [start, end), not empty
  uint64_t time_ns;
  uint32_t site, thread;
  uint32_t flags;  // format::MappingFlags
};

bool MappingMapInit(uint32_t capacity);

// What lay there before is replaced.
void MappingInsert(const MappingRange& range);

// Takes out what lies in [start, end).
void MappingRemove(uint64_t start, uint64_t end);

// What lies in [start, end) is about to go or to move, or perhaps not: it stays, but can be told from what comes
// meanwhile. `mark` is not 0.
void MappingMark(uint64_t start, uint64_t end, uint64_t mark);
// Takes out the lowest range in [start, end) that has the mark. False: there is none.
bool MappingTakeMarked(uint64_t start, uint64_t end, uint64_t mark, MappingRange* taken);
// Takes out all of them.
void MappingRemoveMarked(uint64_t start, uint64_t end, uint64_t mark);

// Changes the protection bits of what lies in [start, end).
void MappingProtect(uint64_t start, uint64_t end, uint32_t protection);

// Where the ranges that follow each other from `start` on end, at most `end`: before a hole, or a range with one of
// the flags `stop`.
uint64_t MappingEndOfRun(uint64_t start, uint64_t end, uint32_t stop);

// The range that holds `address`. False: none.
bool MappingFind(uint64_t address, MappingRange* found);

// After a call of one of these was left in its middle for good: makes a sound map of what is there. What that call had
// in its hands may be forgotten. Takes time in proportion to all ranges.
void MappingMapRepair();

}  // namespace cadastre

#endif  // CADASTRE_INTERPOSER_MAPPING_MAP_H_
