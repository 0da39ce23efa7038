#include "report/hotspot_memory.h"

#include <map>

#include "absl/strings/match.h"
#include "interposer/profile_format.h"

namespace cadastre {
namespace {

struct Name {
  const char* prefix;
  HotSpotPart part;
};

// From the leaf outwards the first name decides. Names of JDK 8 to 25. What all parts share (os::, ReservedSpace,
// VirtualSpace, the mapping policy) is not here and is passed.
constexpr Name kNames[] = {
    {"CodeCache::", HotSpotPart::kCodeCache},
    {"CodeHeap::", HotSpotPart::kCodeCache},
    {"ReservedCodeSpace::", HotSpotPart::kCodeCache},
    {"codeCache_init", HotSpotPart::kCodeCache},
    {"metaspace::", HotSpotPart::kMetaspaceOrClassSpace},
    {"Metaspace::reserve_address_space_for_compressed_classes", HotSpotPart::kClassSpace},
    {"Metaspace::allocate_metaspace_compressed_klass_ptrs", HotSpotPart::kClassSpace},
    {"Metaspace::initialize_class_space", HotSpotPart::kClassSpace},
    {"CompressedKlassPointers::", HotSpotPart::kClassSpace},
    // The archive's file is mapped over its part of this reservation; what is left is the class space.
    {"MetaspaceShared::reserve_address_space_for_archives", HotSpotPart::kClassSpace},
    {"AOTMetaspace::reserve_address_space_for_archives", HotSpotPart::kClassSpace},
    {"MetaspaceShared::", HotSpotPart::kCds},
    {"AOTMetaspace::", HotSpotPart::kCds},
    {"FileMapInfo::", HotSpotPart::kCds},
    {"AOTMappedHeapLoader::", HotSpotPart::kCds},
    {"ArchiveHeapLoader::", HotSpotPart::kCds},
    {"Metaspace::", HotSpotPart::kMetaspaceOrClassSpace},
    {"VirtualSpaceNode::", HotSpotPart::kMetaspaceOrClassSpace},  // JDK 8
    {"Universe::reserve_heap", HotSpotPart::kJavaHeap},
    {"ReservedHeapSpace::", HotSpotPart::kJavaHeap},
    {"HeapReserver::", HotSpotPart::kJavaHeap},
    // The manager's own table; the memory that it manages is mapped by ZPhysicalMemoryBacking.
    {"ZPhysicalMemoryManager::ZPhysicalMemoryManager", HotSpotPart::kGc},
    {"XPhysicalMemoryManager::XPhysicalMemoryManager", HotSpotPart::kGc},
    {"ZPhysicalMemory", HotSpotPart::kJavaHeap},
    {"ZVirtualMemory", HotSpotPart::kJavaHeap},
    {"XPhysicalMemory", HotSpotPart::kJavaHeap},
    {"XVirtualMemory", HotSpotPart::kJavaHeap},
    {"ShenandoahHeapRegion::", HotSpotPart::kJavaHeap},
    {"TenuredGeneration::", HotSpotPart::kJavaHeap},
    {"DefNewGeneration::", HotSpotPart::kJavaHeap},
    {"PSOldGen::", HotSpotPart::kJavaHeap},
    {"PSYoungGen::", HotSpotPart::kJavaHeap},
    {"PSVirtualSpace::", HotSpotPart::kJavaHeapOrGc},
    {"G1PageBasedVirtualSpace::", HotSpotPart::kJavaHeapOrGc},
    {"CardTable", HotSpotPart::kGc},
    {"CardTableRS::", HotSpotPart::kGc},
    {"BlockOffset", HotSpotPart::kGc},
    {"SerialBlockOffset", HotSpotPart::kGc},
    {"ObjectStartArray::", HotSpotPart::kGc},
    {"ParMarkBitMap::", HotSpotPart::kGc},
    {"ParallelCompactData::", HotSpotPart::kGc},
    {"MarkBitMap", HotSpotPart::kGc},
    {"SerialHeap::", HotSpotPart::kGc},
    {"ParallelScavengeHeap::", HotSpotPart::kGc},
    {"GenericTaskQueue", HotSpotPart::kGc},
    {"OverflowTaskQueue", HotSpotPart::kGc},
    {"PSPromotionManager::", HotSpotPart::kGc},
    {"universe_init", HotSpotPart::kGc},
    {"Universe::initialize_heap", HotSpotPart::kGc},
};

// "G1ConcurrentMark::", "ZForwardingAllocator::", "XMarkStack::", "ShenandoahHeap::": a collector's letters and a
// capital.
bool IsCollectorClass(absl::string_view name) {
  if (absl::StartsWith(name, "G1") || absl::StartsWith(name, "Shenandoah")) return true;
  return name.size() > 1 && (name[0] == 'Z' || name[0] == 'X') && name[1] >= 'A' && name[1] <= 'Z';
}

bool IsLibjvm(const Frame& frame) { return absl::EndsWith(frame.library, "/libjvm.so"); }

}  // namespace

HotSpotPart PartOfStack(const std::vector<const Frame*>& frames) {
  if (frames.empty() || frames[0]->java || !IsLibjvm(*frames[0])) return HotSpotPart::kNone;
  for (const Frame* frame : frames) {
    if (frame->java || !IsLibjvm(*frame)) break;
    for (const Name& name : kNames) {
      if (absl::StartsWith(frame->function, name.prefix)) return name.part;
    }
    if (IsCollectorClass(frame->function)) return HotSpotPart::kGc;
  }
  return HotSpotPart::kOther;
}

std::vector<HotSpotPart> PartsOfMappings(const Profile& profile, Attribution* attribution) {
  const std::vector<Mapping>& mappings = profile.mappings;
  std::map<uint32_t, HotSpotPart> of_site;
  std::vector<HotSpotPart> parts(mappings.size(), HotSpotPart::kNone);
  for (size_t i = 0; i < parts.size(); i++) {
    const Mapping& mapping = mappings[i];
    if (mapping.site == kNoSite || (mapping.flags & format::kMappingAllocator) != 0) continue;
    auto [entry, inserted] = of_site.try_emplace(mapping.site);
    if (inserted) entry->second = PartOfStack(attribution->FramesOf(mapping.site));
    parts[i] = entry->second;
  }
  auto settle = [&](HotSpotPart unsettled, HotSpotPart reservation) {
    for (size_t first = 0; first < parts.size();) {
      size_t end = first + 1;
      bool surrounded = parts[first] == reservation;
      while (end < parts.size() && mappings[end].start == mappings[end - 1].end &&
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

HotSpotPart PartOfNmtCategory(absl::string_view category) {
  static constexpr Name kCategories[] = {
      {"Java Heap", HotSpotPart::kJavaHeap},  {"Class", HotSpotPart::kClassSpace},
      {"Metaspace", HotSpotPart::kMetaspace}, {"Code", HotSpotPart::kCodeCache},
      {"GCCardSet", HotSpotPart::kGc},        {"GC", HotSpotPart::kGc},
      {"Card Table", HotSpotPart::kGc},       {"Shared class space", HotSpotPart::kCds},
      {"Thread Stack", HotSpotPart::kNone},
  };
  for (const Name& known : kCategories) {
    if (category == known.prefix) return known.part;
  }
  return HotSpotPart::kOther;
}

bool IsBeforeNmt(const std::vector<const Frame*>& frames) {
  return !frames.empty() && IsLibjvm(*frames[0]) && absl::StartsWith(frames[0]->function, "NMTPreInit");
}

bool IsOsMalloc(const std::vector<const Frame*>& frames) {
  for (const Frame* frame : frames) {
    if (frame->java) return false;
    if (!IsLibjvm(*frame)) return false;
    if (absl::StartsWith(frame->function, "os::malloc") || absl::StartsWith(frame->function, "os::realloc"))
      return true;
    // NMT's own wrappers may be inlined around it; nothing else stands between libc and os::malloc.
    if (!absl::StartsWith(frame->function, "NMT") && !absl::StartsWith(frame->function, "MallocTracker") &&
        !absl::StartsWith(frame->function, "permit_forbidden_function"))
      return false;
  }
  return false;
}

}  // namespace cadastre
