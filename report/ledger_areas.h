// The address space of a process cut into pieces, each with what it is: the join of smaps with what the profile and a
// look into the process know.
//
// Invariant: over the pieces of one area resident and shared bytes add up to what smaps says of it. Where an area has
// several pieces, its resident bytes are divided as its resident pages are (or, where these are not known, by length).
// Units: bytes. Errors: none. Thread-safety: plain values.
//
// Example: std::vector<LedgerPiece> pieces = CutAreas(memory, {&profile, &attribution});
#ifndef CADASTRE_REPORT_LEDGER_AREAS_H_
#define CADASTRE_REPORT_LEDGER_AREAS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/attribution.h"
#include "symbolizer/frame_owner.h"
#include "symbolizer/process_memory.h"
#include "symbolizer/profile.h"

namespace cadastre {

// In the order of the rows. Names: LedgerName.
enum class LedgerKind {
  kJavaHeap,
  kMetaspace,
  kClassSpace,
  kCodeCache,
  kGc,
  kCds,
  kOtherHotSpot,
  kThreadStacks,
  kEndedStacks,
  kLiveMalloc,
  kRetention,
  kAllocator,  // not recorded: live and retention together
  kMappedFiles,
  kAnonymous,
  kLibraryText,
  kLibraryData,
  kSharedMemory,
  kCadastre,
  kKernel,
  kUnexplained,
};
inline constexpr size_t kLedgerKinds = static_cast<size_t>(LedgerKind::kUnexplained) + 1;
const char* LedgerName(LedgerKind kind);  // "Java heap", ..., "unexplained"

// What a piece is, and who has it.
struct LedgerUse {
  LedgerKind kind = LedgerKind::kUnexplained;
  std::string owner, team;  // empty: nobody or not known
  bool guessed = false;
};

struct LedgerPiece {
  uint64_t start = 0, end = 0;
  LedgerUse use;
  uint64_t committed_bytes = 0, resident_bytes = 0, shared_bytes = 0, huge_bytes = 0;
  size_t area = 0;  // index into ProcessMemory::areas
};

struct LedgerInputs {
  const Profile* profile = nullptr;  // both, or neither: the process is not recorded
  Attribution* attribution = nullptr;
  const FrameOwner* rules = nullptr;  // without an attribution: who owns libraries and, by their names, threads
  const FrameOwner* Rules() const { return attribution != nullptr ? &attribution->frame_owner() : rules; }
};

// In order of address.
std::vector<LedgerPiece> CutAreas(const ProcessMemory& memory, const LedgerInputs& inputs);

// Resident bytes of [start, end) within `area`, by its pages.
uint64_t ResidentIn(const ProcessMemory& memory, const MemoryArea& area, uint64_t start, uint64_t end);

// The same of a piece: its resident bytes, divided as its pages are.
double ResidentWithin(const ProcessMemory& memory, const LedgerPiece& piece, uint64_t start, uint64_t end);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_LEDGER_AREAS_H_
