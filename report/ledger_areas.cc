#include "report/ledger_areas.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "report/address_paint.h"
#include "report/area_names.h"
#include "report/committed.h"
#include "report/ledger_paint.h"

namespace cadastre {
namespace {

class Cutter {
 public:
  Cutter(const ProcessMemory& memory, const LedgerInputs& inputs)
      : memory_(memory),
        inputs_(inputs),
        profile_(inputs.profile),
        libraries_(LibraryNames(memory.areas)),
        paint_(PaintAddresses(memory, inputs)) {
    if (inputs.Rules() != nullptr) jvm_rule_ = inputs.Rules()->FindLibrary("libjvm.so");
  }

  std::vector<LedgerPiece> Cut() {
    std::vector<LedgerPiece> pieces;
    for (size_t i = 0; i < memory_.areas.size(); i++) CutArea(i, &pieces);
    return pieces;
  }

 private:
  // What the area's name decides, whatever is painted there; false: nothing.
  bool NamedUse(const MemoryArea& area, LedgerUse* use) const {
    const absl::string_view name = WithoutDeleted(area.name);
    if (name == "[stack]") {
      use->kind = LedgerKind::kThreadStacks;
    } else if (name == "[vdso]" || absl::StartsWith(name, "[vvar") || name == "[vsyscall]" || name == "[uprobes]") {
      use->kind = LedgerKind::kKernel;
    } else if (absl::StrContains(name, "/cadastre-") && absl::EndsWith(name, ".cad")) {
      *use = {LedgerKind::kCadastre, "cadastre"};
    } else if (profile_ != nullptr && !name.empty() && name == profile_->path) {
      *use = {LedgerKind::kCadastre, "cadastre"};
    } else if (name == "/memfd:java_heap") {
      use->kind = LedgerKind::kJavaHeap;
    } else if (absl::StrContains(name, "/hsperfdata_")) {
      use->kind = LedgerKind::kOtherHotSpot;
    } else if (libraries_.contains(area.name)) {
      *use = LibraryUse(
          area.name, !area.writable && area.anonymous_bytes == 0 ? LedgerKind::kLibraryText : LedgerKind::kLibraryData,
          inputs_);
    } else {
      return false;
    }
    return true;
  }

  // Parts of the JVM are whose libjvm.so is, built-in rules included: some are known by their mapping's stack, some by
  // their address alone, and what is in them has owners that no mapping tells (a heap dump's, the classes').
  LedgerUse PieceUse(const MemoryArea& area, const LedgerUse* painted) const {
    LedgerUse use = UseOf(area, painted);
    if (use.kind > LedgerKind::kOtherHotSpot) return use;
    LedgerUse jvm = {use.kind};
    if (jvm_rule_ != nullptr) {
      jvm.owner = jvm_rule_->module;
      jvm.team = jvm_rule_->team;
    }
    return jvm;
  }

  LedgerUse UseOf(const MemoryArea& area, const LedgerUse* painted) const {
    LedgerUse use;
    const absl::string_view name = WithoutDeleted(area.name);
    if (painted != nullptr && painted->kind == LedgerKind::kCadastre) return *painted;
    if (name == "[stack]" && painted != nullptr && painted->kind == LedgerKind::kThreadStacks) return *painted;
    if (NamedUse(area, &use)) return use;
    if (IsAnonymous(area)) {
      if (painted != nullptr) use = *painted;
      if (use.kind == LedgerKind::kMappedFiles) use.kind = LedgerKind::kAnonymous;
      if (painted == nullptr && (name == "[heap]" || absl::StrContains(name, "glibc: malloc")))
        use.kind = LedgerKind::kAllocator;
      if (painted == nullptr && absl::StartsWith(name, "[anon:")) {
        use = {LedgerKind::kAnonymous, std::string(absl::StripSuffix(absl::StripPrefix(name, "[anon:"), "]"))};
        use.owner = std::string(absl::StripAsciiWhitespace(use.owner));
      }
      if (painted == nullptr && area.shared) use.kind = LedgerKind::kSharedMemory;
      // Without records nobody knows who has mapped it, and nothing is unexplained about that.
      if (use.kind == LedgerKind::kUnexplained && profile_ == nullptr) use.kind = LedgerKind::kAnonymous;
      if (use.kind == LedgerKind::kAllocator && profile_ != nullptr) use.kind = LedgerKind::kRetention;
      return use;
    }
    // A file, or shared memory that has a name.
    const bool hotspot = painted != nullptr && painted->kind <= LedgerKind::kOtherHotSpot;
    if (painted != nullptr && painted->kind == LedgerKind::kJavaHeap) return *painted;
    if (IsArchive(area)) return {LedgerKind::kCds};
    if (hotspot && painted->kind != LedgerKind::kOtherHotSpot && painted->kind != LedgerKind::kCds) return *painted;
    const bool recorded = painted != nullptr && (painted->kind == LedgerKind::kMappedFiles ||
                                                 painted->kind == LedgerKind::kSharedMemory || hotspot);
    if (recorded) use = *painted;
    const bool memory = absl::StartsWith(name, "/dev/shm/") || absl::StartsWith(name, "/SYSV") ||
                        absl::StartsWith(name, "/memfd:") || absl::StartsWith(name, "/dev/zero") ||
                        absl::StartsWith(name, "[anon_shmem:") || (!name.empty() && name[0] != '/');
    use.kind = memory ? LedgerKind::kSharedMemory : LedgerKind::kMappedFiles;
    return use;
  }

  // Cut where the paint changes; neighbours of the same use are one piece.
  void CutArea(size_t index, std::vector<LedgerPiece>* pieces) {
    const MemoryArea& area = memory_.areas[index];
    const size_t first = pieces->size();
    paint_.ForEach(area.start, area.end, [&](uint64_t start, uint64_t end, const LedgerUse* painted) {
      LedgerPiece piece;
      piece.start = start;
      piece.end = end;
      piece.use = PieceUse(area, painted);
      piece.area = index;
      LedgerPiece* last = pieces->size() > first ? &pieces->back() : nullptr;
      if (last != nullptr && last->use.kind == piece.use.kind && last->use.owner == piece.use.owner &&
          last->use.team == piece.use.team) {
        last->end = end;
      } else {
        pieces->push_back(std::move(piece));
      }
    });
    AdoptNeighbours(first, pieces);
    AdoptGrowth(area, first, pieces);
    NameWhatHadNoRoom(area, first, pieces);
    Divide(area, first, pieces);
  }

  // glibc's big blocks have mappings of their own, which grow together; only some of the blocks are sampled. What no
  // hook saw and lies in one area with such a block is another of them.
  void AdoptNeighbours(size_t first, std::vector<LedgerPiece>* pieces) const {
    if (profile_ == nullptr) return;
    bool has_block = false;
    for (size_t i = first; i < pieces->size(); i++) has_block |= (*pieces)[i].use.kind == LedgerKind::kRetention;
    for (size_t i = first; has_block && i < pieces->size(); i++) {
      if ((*pieces)[i].use.kind == LedgerKind::kUnexplained) (*pieces)[i].use = {LedgerKind::kRetention};
    }
  }

  // Where the profile had no room for mappings nobody knows who has mapped what is left, as without records.
  void NameWhatHadNoRoom(const MemoryArea& area, size_t first, std::vector<LedgerPiece>* pieces) const {
    if (profile_ == nullptr || profile_->losses.mappings_full == 0 || !IsAnonymous(area)) return;
    for (size_t i = first; i < pieces->size(); i++) {
      if ((*pieces)[i].use.kind == LedgerKind::kUnexplained) (*pieces)[i].use.kind = LedgerKind::kAnonymous;
    }
  }

  // Below what was mapped to grow downwards lies what the kernel has made it grow by, without a call.
  void AdoptGrowth(const MemoryArea& area, size_t first, std::vector<LedgerPiece>* pieces) const {
    const bool has_grown =
        area.grows_down && pieces->size() > first + 1 && (*pieces)[first].use.kind == LedgerKind::kUnexplained;
    if (!has_grown) return;
    (*pieces)[first + 1].start = (*pieces)[first].start;
    pieces->erase(pieces->begin() + static_cast<ptrdiff_t>(first));
  }

  // As committed.h says; and pages of a file or of shared memory that are mapped several times (by ZGC up to JDK 17
  // three times) once.
  uint64_t CommittedOf(const MemoryArea& area, const LedgerPiece& piece) {
    switch (CommitmentOf(area)) {
      case Commitment::kNothing:
        return 0;
      case Commitment::kTouched:
        return piece.resident_bytes;
      case Commitment::kAll:
        break;
    }
    if (!area.shared || area.inode == 0) return piece.end - piece.start;
    AddressPaint<char>& counted = counted_[{area.name, area.inode}];
    const uint64_t from = area.offset + (piece.start - area.start), to = from + (piece.end - piece.start);
    uint64_t committed = 0;
    counted.ForEach(from, to, [&](uint64_t start, uint64_t end, const char* before) {
      if (before == nullptr) committed += end - start;
    });
    counted.Over(from, to, 0);
    return committed;
  }

  // Running sums rounded down: the parts add up exactly.
  void Divide(const MemoryArea& area, size_t first, std::vector<LedgerPiece>* pieces) {
    double whole = 0;
    std::vector<double> weights;
    for (size_t i = first; i < pieces->size(); i++) {
      const LedgerPiece& piece = (*pieces)[i];
      weights.push_back(area.pages_known ? static_cast<double>(ResidentIn(memory_, area, piece.start, piece.end))
                                         : static_cast<double>(piece.end - piece.start));
      whole += weights.back();
    }
    // smaps and pagemap are read one after the other: an area may have got its pages in between.
    if (whole <= 0) {
      whole = static_cast<double>(area.end - area.start);
      for (size_t i = first; i < pieces->size(); i++)
        weights[i - first] = static_cast<double>((*pieces)[i].end - (*pieces)[i].start);
    }
    double sum = 0;
    uint64_t resident = 0, shared = 0, huge = 0;
    for (size_t i = first; i < pieces->size(); i++) {
      LedgerPiece& piece = (*pieces)[i];
      sum += weights[i - first];
      const double share = i + 1 == pieces->size() ? 1.0 : sum / whole;
      auto part = [share](uint64_t total, uint64_t* so_far) {
        const uint64_t upto = share >= 1.0 ? total : static_cast<uint64_t>(static_cast<double>(total) * share);
        const uint64_t mine = upto - std::min(upto, *so_far);
        *so_far += mine;
        return mine;
      };
      piece.resident_bytes = part(area.rss_bytes, &resident);
      piece.committed_bytes = CommittedOf(area, piece);
      piece.shared_bytes = part(area.shared_bytes, &shared);
      piece.huge_bytes = part(area.huge_bytes, &huge);
    }
  }

  const ProcessMemory& memory_;
  const LedgerInputs& inputs_;
  const Profile* profile_;
  const Rule* jvm_rule_ = nullptr;
  std::set<std::string> libraries_;  // names of areas with code
  const AddressPaint<LedgerUse> paint_;
  std::map<std::pair<std::string, uint64_t>, AddressPaint<char>> counted_;  // file → offsets that were committed
};

}  // namespace

const char* LedgerName(LedgerKind kind) {
  static constexpr const char* kNames[kLedgerKinds] = {
      "Java heap",           "metaspace",          "class space",         "code cache",
      "GC structures",       "CDS archive",        "other HotSpot",       "thread stacks",
      "ended thread stacks", "malloc live",        "allocator retention", "allocator (not recorded)",
      "mapped files",        "anonymous mappings", "library text",        "library data",
      "shared memory",       "Cadastre",           "kernel (vdso)",       "unexplained"};
  return kNames[static_cast<size_t>(kind)];
}

uint64_t ResidentIn(const ProcessMemory& memory, const MemoryArea& area, uint64_t start, uint64_t end) {
  start = std::max(start, area.start);
  end = std::min(end, area.end);
  if (start >= end) return 0;
  if (!area.pages_known) {
    return static_cast<uint64_t>(static_cast<double>(end - start) * static_cast<double>(area.rss_bytes) /
                                 static_cast<double>(area.end - area.start));
  }
  auto range = std::upper_bound(memory.resident.begin(), memory.resident.end(), start,
                                [](uint64_t at, const MemoryRange& other) { return at < other.end; });
  uint64_t sum = 0;
  for (; range != memory.resident.end() && range->start < end; ++range)
    sum += std::min(end, range->end) - std::max(start, range->start);
  return sum;
}

double ResidentWithin(const ProcessMemory& memory, const LedgerPiece& piece, uint64_t start, uint64_t end) {
  const MemoryArea& area = memory.areas[piece.area];
  // pagemap counts pages of zeros that Rss does not, and was read a moment later.
  const double present = static_cast<double>(ResidentIn(memory, area, piece.start, piece.end));
  const double scale = present > 0 ? std::min(1.0, static_cast<double>(piece.resident_bytes) / present) : 0;
  const uint64_t from = std::max(start, piece.start), to = std::min(end, piece.end);
  return static_cast<double>(ResidentIn(memory, area, from, to)) * scale;
}

std::vector<LedgerPiece> CutAreas(const ProcessMemory& memory, const LedgerInputs& inputs) {
  return Cutter(memory, inputs).Cut();
}

}  // namespace cadastre
