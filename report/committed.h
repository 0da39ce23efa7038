// What of a mapping the system has promised: the one rule of the ledger, of the metric "mapped" and of NMT's category
// External.
//
// Not what may not be touched; of MAP_NORESERVE, for which the kernel promises nothing, what has been touched; else all
// of it. What has been touched only smaps tells: where there is none (a profile that is no snapshot) all of it counts,
// which is the most that it can be. Units: bytes. Errors: none. Thread-safety: pure functions.
#ifndef CADASTRE_REPORT_COMMITTED_H_
#define CADASTRE_REPORT_COMMITTED_H_

#include <cstdint>

#include "symbolizer/process_memory.h"
#include "symbolizer/profile.h"

namespace cadastre {

enum class Commitment { kNothing, kTouched, kAll };

Commitment CommitmentOf(const MemoryArea& area);
Commitment CommitmentOf(const Mapping& mapping);

// memory: the process as it was then; nullptr = not known.
uint64_t CommittedBytes(const Mapping& mapping, const ProcessMemory* memory);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_COMMITTED_H_
