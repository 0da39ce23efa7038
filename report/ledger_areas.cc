#include "report/ledger_areas.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "interposer/profile_format.h"
#include "report/hotspot_memory.h"

namespace cadastre {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kArenaHeapBytes = 64 << 20;

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

absl::string_view WithoutDeleted(absl::string_view name) {
  absl::ConsumeSuffix(&name, " (deleted)");
  return name;
}

// Ranges over one another: what is painted later lies on top.
class Paint {
 public:
  void Over(uint64_t start, uint64_t end, LedgerUse use) {
    if (start >= end) return;
    Cut(start);
    Cut(end);
    uses_.push_back(std::move(use));
    auto from = spans_.lower_bound(start);
    spans_.erase(from, spans_.lower_bound(end));
    spans_[start] = {end, uses_.size() - 1};
  }

  // Calls visit(start, end, use) for the parts of [start, end), use == nullptr where nothing is painted.
  template <typename Visit>
  void ForEach(uint64_t start, uint64_t end, Visit visit) const {
    auto span = spans_.upper_bound(start);
    if (span != spans_.begin() && std::prev(span)->second.first > start) --span;
    uint64_t at = start;
    for (; at < end && span != spans_.end() && span->first < end; ++span) {
      if (span->first > at) visit(at, span->first, nullptr);
      const uint64_t from = std::max(at, span->first), to = std::min(end, span->second.first);
      visit(from, to, &uses_[span->second.second]);
      at = to;
    }
    if (at < end) visit(at, end, nullptr);
  }

 private:
  void Cut(uint64_t at) {
    auto span = spans_.upper_bound(at);
    if (span == spans_.begin()) return;
    --span;
    if (span->first == at || span->second.first <= at) return;
    spans_[at] = span->second;
    span->second.first = at;
  }

  std::map<uint64_t, std::pair<uint64_t, size_t>> spans_;  // start → end, index into uses_
  std::vector<LedgerUse> uses_;
};

LedgerKind KindOf(HotSpotPart part) {
  switch (part) {
    case HotSpotPart::kJavaHeap:
      return LedgerKind::kJavaHeap;
    case HotSpotPart::kMetaspace:
    case HotSpotPart::kMetaspaceOrClassSpace:
      return LedgerKind::kMetaspace;
    case HotSpotPart::kClassSpace:
      return LedgerKind::kClassSpace;
    case HotSpotPart::kCodeCache:
      return LedgerKind::kCodeCache;
    case HotSpotPart::kGc:
    case HotSpotPart::kJavaHeapOrGc:
      return LedgerKind::kGc;
    case HotSpotPart::kCds:
      return LedgerKind::kCds;
    case HotSpotPart::kOther:
    case HotSpotPart::kNone:
      break;
  }
  return LedgerKind::kOtherHotSpot;
}

class Cutter {
 public:
  Cutter(const ProcessMemory& memory, const Profile* profile, Attribution* attribution)
      : memory_(memory), profile_(profile), attribution_(attribution) {
    for (const MemoryArea& area : memory.areas) {
      if (area.executable && !area.name.empty() && area.name[0] == '/') libraries_.insert(area.name);
    }
    for (const LiveThread& thread : memory.threads) tids_.insert(thread.tid);
  }

  std::vector<LedgerPiece> Cut() {
    // What is surer, or says more, comes later.
    if (profile_ != nullptr) PaintStacks(/*ended=*/true);
    PaintLibraryData();
    PaintKnown(KnownUse::kAllocator, LedgerKind::kAllocator);
    if (profile_ != nullptr) PaintLiveBlocks();
    if (profile_ == nullptr) PaintKnown(KnownUse::kThreadStack, LedgerKind::kThreadStacks);
    PaintClassSpace();
    if (profile_ != nullptr) PaintMappings();
    PaintNmt();
    PaintKnown(KnownUse::kCodeCache, LedgerKind::kCodeCache);
    PaintKnown(KnownUse::kJavaHeap, LedgerKind::kJavaHeap);
    if (profile_ != nullptr) PaintStacks(/*ended=*/false);
    if (profile_ != nullptr) {
      for (const MemoryRange& own : profile_->own_memory)
        paint_.Over(own.start, own.end, {LedgerKind::kCadastre, "cadastre"});
    }
    std::vector<LedgerPiece> pieces;
    for (size_t i = 0; i < memory_.areas.size(); i++) CutArea(i, &pieces);
    return pieces;
  }

 private:
  static bool IsAnonymous(const MemoryArea& area) {
    return area.name.empty() || absl::StartsWith(area.name, "[anon") || area.name == "[heap]";
  }

  void PaintKnown(KnownUse use, LedgerKind kind) {
    for (const KnownRange& range : memory_.known) {
      if (range.use == use) paint_.Over(range.start, range.end, {kind});
    }
  }

  void PaintNmt() {
    for (const KnownRange& range : memory_.known) {
      if (range.use != KnownUse::kNmt) continue;
      const HotSpotPart part = PartOfNmtCategory(range.text);
      // One category's name is also used for what a mapping's stack tells better.
      if (part != HotSpotPart::kNone && part != HotSpotPart::kOther)
        paint_.Over(range.start, range.end, {KindOf(part)});
    }
  }

  // A block that malloc returned lies there, and no mapping function was called for it: so it is the allocator's.
  void PaintLiveBlocks() {
    for (const LiveSample& sample : profile_->live) {
      if (profile_->sites[sample.site].kind != SiteKind::kMalloc || sample.size_bytes == 0) continue;
      paint_.Over(sample.address / kPage * kPage, (sample.address + sample.size_bytes + kPage - 1) / kPage * kPage,
                  {LedgerKind::kAllocator});
    }
  }

  // Zero-initialised data lies behind a library's file, in an area that has no name and may have grown together with
  // its neighbour. The profile knows where the library ends.
  void PaintLibraryData() {
    for (size_t i = 1; i < memory_.areas.size(); i++) {
      const MemoryArea& area = memory_.areas[i];
      const MemoryArea& before = memory_.areas[i - 1];
      if (!area.name.empty() || before.end != area.start || !area.writable || !libraries_.contains(before.name))
        continue;
      uint64_t end = area.end;
      if (profile_ != nullptr) {
        for (const Library& library : profile_->libraries) {
          if (library.unloaded_ns == 0 && library.start < area.start && area.start < library.end)
            end = std::min(end, (library.end + kPage - 1) / kPage * kPage);
        }
      }
      paint_.Over(area.start, end, LibraryUse(before, LedgerKind::kLibraryData));
    }
  }

  LedgerUse LibraryUse(const MemoryArea& area, LedgerKind kind) const {
    const absl::string_view file = BaseName(WithoutDeleted(area.name));
    if (absl::StartsWith(file, "libcadastre")) return {LedgerKind::kCadastre, "cadastre"};
    if (attribution_ != nullptr) {
      if (const Rule* rule = attribution_->OwnerOfLibrary(std::string(WithoutDeleted(area.name))); rule != nullptr)
        return {kind, rule->module, rule->team};
    }
    return {kind, std::string(file)};
  }

  // The class space is reserved together with the CDS archive, and follows it; its unused rest is not accessible.
  void PaintClassSpace() {
    for (size_t i = 1; i < memory_.areas.size(); i++) {
      if (!IsArchive(memory_.areas[i - 1]) || !IsAnonymous(memory_.areas[i])) continue;
      for (size_t k = i; k < memory_.areas.size(); k++) {
        const MemoryArea& area = memory_.areas[k];
        if (area.start != memory_.areas[k - 1].end || !area.name.empty() || area.executable) break;
        // The gap up to the class space's alignment belongs to the archive.
        const bool gap = k == i && !area.readable && area.end % (16 << 20) == 0 && area.end - area.start < (16 << 20);
        paint_.Over(area.start, area.end, {gap ? LedgerKind::kCds : LedgerKind::kClassSpace});
        if (!area.readable && area.end - area.start >= kArenaHeapBytes) break;
      }
      const size_t archive = FirstOfRun(i - 1);
      if (archive > 0 && memory_.areas[archive - 1].end == memory_.areas[archive].start &&
          memory_.areas[archive - 1].name.empty() && !memory_.areas[archive - 1].readable)
        paint_.Over(memory_.areas[archive - 1].start, memory_.areas[archive].start, {LedgerKind::kCds});
    }
  }
  static bool IsArchive(const MemoryArea& area) { return absl::EndsWith(WithoutDeleted(area.name), ".jsa"); }
  size_t FirstOfRun(size_t i) const {
    while (i > 0 && memory_.areas[i - 1].name == memory_.areas[i].name &&
           memory_.areas[i - 1].end == memory_.areas[i].start)
      i--;
    return i;
  }

  void PaintStacks(bool ended) {
    for (const Thread& thread : profile_->threads) {
      if (thread.stack_high == 0 || thread.tid == 0) continue;
      const bool lives = !thread.ended && tids_.contains(thread.tid);
      if (lives == ended) continue;
      LedgerUse use = {ended ? LedgerKind::kEndedStacks : LedgerKind::kThreadStacks};
      if (thread.creation_site != kNoSite) Charge(thread.creation_site, 0, &use);
      paint_.Over(thread.stack_low, thread.stack_high, use);
    }
  }

  void Charge(uint32_t site, uint32_t thread, LedgerUse* use) {
    const cadastre::Charge& charge = attribution_->ChargeOf(site, thread);
    use->owner = charge.module;
    use->team = charge.team;
    use->guessed = charge.guessed;
  }

  // What HotSpot commits looks alike for the class space and the other metaspace, for the heap and the collector's own
  // tables: the reservation that surrounds it decides.
  std::vector<HotSpotPart> PartsOfMappings() {
    std::map<uint32_t, HotSpotPart> of_site;
    std::vector<HotSpotPart> parts(profile_->mappings.size(), HotSpotPart::kNone);
    for (size_t i = 0; i < parts.size(); i++) {
      const Mapping& mapping = profile_->mappings[i];
      if (mapping.site == kNoSite || (mapping.flags & format::kMappingAllocator) != 0) continue;
      auto [entry, inserted] = of_site.try_emplace(mapping.site);
      if (inserted) entry->second = PartOfStack(attribution_->FramesOf(mapping.site));
      parts[i] = entry->second;
    }
    auto settle = [&](HotSpotPart unsettled, HotSpotPart reservation) {
      for (size_t first = 0; first < parts.size();) {
        size_t end = first + 1;
        bool surrounded = parts[first] == reservation;
        while (end < parts.size() && profile_->mappings[end].start == profile_->mappings[end - 1].end &&
               (parts[end] == unsettled || parts[end] == reservation) &&
               (parts[first] == unsettled || parts[first] == reservation)) {
          surrounded |= parts[end] == reservation;
          end++;
        }
        for (size_t i = first; surrounded && i < end; i++) {
          if (parts[i] == unsettled) parts[i] = reservation;
        }
        first = end;
      }
    };
    settle(HotSpotPart::kMetaspaceOrClassSpace, HotSpotPart::kClassSpace);
    settle(HotSpotPart::kJavaHeapOrGc, HotSpotPart::kJavaHeap);
    return parts;
  }

  void PaintMappings() {
    const std::vector<HotSpotPart> parts = PartsOfMappings();
    for (size_t i = 0; i < parts.size(); i++) {
      const Mapping& mapping = profile_->mappings[i];
      LedgerUse use;
      if ((mapping.flags & format::kMappingAllocator) != 0) {
        use.kind = LedgerKind::kAllocator;
      } else {
        use.kind = parts[i] != HotSpotPart::kNone                ? KindOf(parts[i])
                   : (mapping.flags & format::kMappingFile) != 0 ? LedgerKind::kMappedFiles
                   : (mapping.flags & (format::kMappingSegment | format::kMappingShared)) != 0
                       ? LedgerKind::kSharedMemory
                       : LedgerKind::kAnonymous;
        if (mapping.site != kNoSite) Charge(mapping.site, mapping.thread, &use);
        if (parts[i] == HotSpotPart::kMetaspaceOrClassSpace && IsPaintedClassSpace(mapping))
          use.kind = LedgerKind::kClassSpace;
      }
      paint_.Over(mapping.start, mapping.end, use);
    }
  }
  bool IsPaintedClassSpace(const Mapping& mapping) const {
    bool class_space = false;
    paint_.ForEach(mapping.start, mapping.start + kPage, [&](uint64_t, uint64_t, const LedgerUse* use) {
      class_space |= use != nullptr && use->kind == LedgerKind::kClassSpace;
    });
    return class_space;
  }

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
          area, !area.writable && area.anonymous_bytes == 0 ? LedgerKind::kLibraryText : LedgerKind::kLibraryData);
    } else {
      return false;
    }
    return true;
  }

  // Parts of the JVM have a name and no owner: some are known by their mapping's stack, some by their address alone.
  LedgerUse PieceUse(const MemoryArea& area, const LedgerUse* painted) const {
    LedgerUse use = UseOf(area, painted);
    return use.kind <= LedgerKind::kOtherHotSpot ? LedgerUse{use.kind} : use;
  }

  LedgerUse UseOf(const MemoryArea& area, const LedgerUse* painted) const {
    LedgerUse use;
    const absl::string_view name = WithoutDeleted(area.name);
    if (NamedUse(area, &use)) return use;
    if (IsAnonymous(area)) {
      if (painted != nullptr) use = *painted;
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

  // Running sums rounded down: the parts add up exactly.
  void Divide(const MemoryArea& area, size_t first, std::vector<LedgerPiece>* pieces) const {
    const bool committed = area.readable || area.writable || area.executable;
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
      piece.committed_bytes = committed ? piece.end - piece.start : 0;
      piece.resident_bytes = part(area.rss_bytes, &resident);
      piece.shared_bytes = part(area.shared_bytes, &shared);
      piece.huge_bytes = part(area.huge_bytes, &huge);
    }
  }

  const ProcessMemory& memory_;
  const Profile* profile_;
  Attribution* attribution_;
  std::set<std::string> libraries_;  // names of areas with code
  std::set<uint32_t> tids_;
  Paint paint_;
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

std::vector<LedgerPiece> CutAreas(const ProcessMemory& memory, const Profile* profile, Attribution* attribution) {
  return Cutter(memory, profile, attribution).Cut();
}

}  // namespace cadastre
