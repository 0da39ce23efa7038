#include "report/committed.h"

#include <algorithm>

#include "interposer/profile_format.h"
#include "report/ledger_areas.h"

namespace cadastre {
namespace {

Commitment JudgeArea(bool accessible, bool noreserve, bool shared) {
  if (!accessible) return Commitment::kNothing;
  return noreserve && !shared ? Commitment::kTouched : Commitment::kAll;
}

uint64_t TouchedBytes(const Mapping& mapping, const ProcessMemory& memory) {
  auto area = std::upper_bound(memory.areas.begin(), memory.areas.end(), mapping.start,
                               [](uint64_t at, const MemoryArea& other) { return at < other.end; });
  uint64_t sum = 0;
  for (; area != memory.areas.end() && area->start < mapping.end; ++area)
    sum += ResidentIn(memory, *area, mapping.start, mapping.end);
  return sum;
}

}  // namespace

Commitment CommitmentOf(const MemoryArea& area) {
  return JudgeArea(area.readable || area.writable || area.executable, area.noreserve, area.shared);
}

Commitment CommitmentOf(const Mapping& mapping) {
  return JudgeArea((mapping.flags & format::kMappingProtection) != 0, (mapping.flags & format::kMappingNoReserve) != 0,
                   (mapping.flags & format::kMappingShared) != 0);
}

uint64_t CommittedBytes(const Mapping& mapping, const ProcessMemory* memory) {
  const Commitment commitment = CommitmentOf(mapping);
  if (commitment == Commitment::kNothing) return 0;
  if (commitment == Commitment::kTouched && memory != nullptr) return TouchedBytes(mapping, *memory);
  return mapping.end - mapping.start;
}

}  // namespace cadastre
