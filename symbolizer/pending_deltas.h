// What thread buffers hold that no site has yet: allocation counters = site + pending deltas of all buffers.
//
// A process killed between two steps leaves a redo slot (see format::BufferRecord); with it each counter is counted
// exactly once. Units: as in format::Delta. Errors: a buffer that does not make sense is skipped and counted as torn.
// Thread-safety: pure function.
//
// Example: tail 3, head 6, applied bit 1, redo {armed, tail 3, places bit 0, field kDeltaBytes, old 100}, and the
//   site's allocated_bytes is 100: delta 3: samples and count are applied; bytes (the site still has the old value) and
//   variance are pending. delta 4: applied. delta 5: all pending.
#ifndef CADASTRE_SYMBOLIZER_PENDING_DELTAS_H_
#define CADASTRE_SYMBOLIZER_PENDING_DELTAS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "interposer/profile_format.h"

namespace cadastre {

// site(index) gives the record as it is in the file, or nullptr if there is none that is whole.
// add(delta) is called for each pending delta, with the fields that are applied already set to 0.
// Returns the number of torn things (buffers, deltas).
uint64_t ForEachPendingDelta(const format::BufferRecord& buffer,
                             absl::FunctionRef<const format::SiteRecord*(uint32_t)> site,
                             absl::FunctionRef<void(const format::Delta&)> add);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_PENDING_DELTAS_H_
