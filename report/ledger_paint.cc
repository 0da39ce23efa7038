#include "report/ledger_paint.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "interposer/profile_format.h"
#include "report/area_names.h"
#include "report/hotspot_memory.h"
#include "report/thread_stacks.h"

namespace cadastre {
namespace {

constexpr uint64_t kClassSpaceAlignment = 16 << 20;  // JDK 24 and later

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

class Painter {
 public:
  Painter(const ProcessMemory& memory, const LedgerInputs& inputs)
      : memory_(memory), inputs_(inputs), profile_(inputs.profile), attribution_(inputs.attribution) {}

  AddressPaint<LedgerUse> Paint() {
    // What is surer, or says more, comes later.
    PaintStacks(/*ended=*/true);
    PaintLibraryData();
    PaintKnown(KnownUse::kAllocator, LedgerKind::kAllocator);
    // Where classes were seen. What is in them may read like a block's header; recorded mappings say it exactly.
    if (profile_ == nullptr) {
      PaintKnown(KnownUse::kMetaspace, LedgerKind::kMetaspace);
      PaintKnown(KnownUse::kClassSpace, LedgerKind::kClassSpace);
    }
    if (profile_ != nullptr) PaintLiveBlocks();
    if (profile_ == nullptr) PaintStacks(/*ended=*/false);
    PaintClassSpace();
    PaintKnown(KnownUse::kGc, LedgerKind::kGc);
    if (profile_ != nullptr) PaintMappings();
    PaintArchiveGaps();
    PaintNmt();
    PaintKnown(KnownUse::kCodeCache, LedgerKind::kCodeCache);
    PaintKnown(KnownUse::kJavaHeap, LedgerKind::kJavaHeap);
    if (profile_ != nullptr) PaintStacks(/*ended=*/false);
    if (profile_ != nullptr) {
      for (const MemoryRange& own : profile_->own_memory)
        PaintPages(own.start, own.end, {LedgerKind::kCadastre, "cadastre"});
    }
    return std::move(paint_);
  }

 private:
  // What lies in a page at all has the page: no part of one is resident alone.
  void PaintPages(uint64_t start, uint64_t end, const LedgerUse& use) {
    paint_.Over(start / kPage * kPage, (end + kPage - 1) / kPage * kPage, use);
  }

  void PaintKnown(KnownUse use, LedgerKind kind) {
    for (const KnownRange& range : memory_.known) {
      if (range.use == use) PaintPages(range.start, range.end, {kind});
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
      PaintPages(sample.address, sample.address + sample.size_bytes, {LedgerKind::kAllocator});
    }
  }

  // Where the library that is loaded at `start` ends in memory, by its program headers, read from outside or by the
  // program's own loader; UINT64_MAX = not known.
  uint64_t LibraryEnd(uint64_t start) const {
    for (const KnownRange& range : memory_.known) {
      if (range.use == KnownUse::kLibrary && range.start <= start && start < range.end) return range.end;
    }
    if (profile_ == nullptr) return UINT64_MAX;
    for (const Library& library : profile_->libraries) {
      if (library.unloaded_ns == 0 && library.start <= start && start < library.end) return library.end;
    }
    return UINT64_MAX;
  }

  // Zero-initialised data lies behind a library's file, in an area that has no name and may have grown together with
  // its neighbour, or belong to another altogether.
  void PaintLibraryData() {
    const std::set<std::string> libraries = LibraryNames(memory_.areas);
    for (size_t i = 1; i < memory_.areas.size(); i++) {
      const MemoryArea& area = memory_.areas[i];
      const MemoryArea& before = memory_.areas[i - 1];
      if (!area.name.empty() || before.end != area.start || !area.writable || !libraries.contains(before.name))
        continue;
      PaintPages(area.start, std::min(area.end, LibraryEnd(before.start)),
                 LibraryUse(before.name, LedgerKind::kLibraryData, inputs_));
    }
  }

  // The class space is reserved together with the CDS archive, and follows it; its unused rest is not accessible.
  void PaintClassSpace() {
    for (size_t i = 1; i < memory_.areas.size(); i++) {
      if (!IsArchive(memory_.areas[i - 1]) || !IsAnonymous(memory_.areas[i])) continue;
      for (size_t k = i; k < memory_.areas.size(); k++) {
        const MemoryArea& area = memory_.areas[k];
        if (area.start != memory_.areas[k - 1].end || !area.name.empty() || area.executable) break;
        paint_.Over(area.start, area.end, {LedgerKind::kClassSpace});
        if (!area.readable && area.end - area.start >= kArenaHeapBytes) break;
      }
    }
  }

  // Around the archive lie a page that guards it and the gap up to the class space's alignment: its own, although one
  // reservation holds all of it.
  void PaintArchiveGaps() {
    auto paint_gap = [&](size_t i) {
      const MemoryArea& gap = memory_.areas[i];
      if (gap.name.empty() && !gap.readable && gap.end - gap.start < kClassSpaceAlignment)
        paint_.Over(gap.start, gap.end, {LedgerKind::kCds});
    };
    for (size_t i = 0; i < memory_.areas.size(); i++) {
      if (!IsArchive(memory_.areas[i])) continue;
      const size_t first = FirstOfRun(i);
      if (first > 0 && memory_.areas[first - 1].end == memory_.areas[first].start) paint_gap(first - 1);
      if (i + 1 < memory_.areas.size() && memory_.areas[i + 1].start == memory_.areas[i].end &&
          memory_.areas[i + 1].end % kClassSpaceAlignment == 0)
        paint_gap(i + 1);
    }
  }
  size_t FirstOfRun(size_t i) const {
    while (i > 0 && memory_.areas[i - 1].name == memory_.areas[i].name &&
           memory_.areas[i - 1].end == memory_.areas[i].start)
      i--;
    return i;
  }

  void PaintStacks(bool ended) {
    for (const StackRange& range : StackRanges(memory_, profile_)) {
      if (range.ended == ended) paint_.Over(range.start, range.end, StackUse(range, memory_, inputs_));
    }
  }

  void Charge(uint32_t site, uint32_t thread, LedgerUse* use) {
    const cadastre::Charge& charge = attribution_->ChargeOf(site, thread);
    use->owner = charge.module;
    use->team = charge.team;
    use->guessed = charge.guessed;
  }

  void PaintMappings() {
    const std::vector<HotSpotPart> parts = PartsOfMappings(*inputs_.profile, inputs_.attribution);
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

  const ProcessMemory& memory_;
  const LedgerInputs& inputs_;
  const Profile* profile_;
  Attribution* attribution_;
  AddressPaint<LedgerUse> paint_;
};

}  // namespace

AddressPaint<LedgerUse> PaintAddresses(const ProcessMemory& memory, const LedgerInputs& inputs) {
  return Painter(memory, inputs).Paint();
}

LedgerUse LibraryUse(const std::string& name, LedgerKind kind, const LedgerInputs& inputs) {
  const std::string path(WithoutDeleted(name)), file = path.substr(path.rfind('/') + 1);
  if (absl::StartsWith(file, "libcadastre")) return {LedgerKind::kCadastre, "cadastre"};
  if (const FrameOwner* rules = inputs.Rules(); rules != nullptr) {
    const Rule* rule = rules->FindLibrary(path);
    if (rule != nullptr && !IsTransparentInStacks(*rule)) return {kind, rule->module, rule->team};
  }
  return {kind, file};
}

}  // namespace cadastre
