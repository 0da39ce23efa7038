// What HotSpot's exported tables say, read from outside.
#include <string.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "report/target_library.h"
#include "report/target_memory.h"

namespace cadastre {
namespace {

constexpr uint64_t kMaxEntries = 16384;
constexpr uint64_t kRootChunk = 4 << 20;  // metaspace is handed out from chunks so aligned (JDK 17; since 21 of 16 MiB)
// Enough to meet each area with metadata, and at most a tenth of a second.
constexpr uint64_t kMaxLoaders = 10000, kMaxClassesOfLoader = 4000, kMaxClasses = 20000;
constexpr size_t kMaxName = 256;

struct VmStructEntry {
  uint64_t type_name, field_name, type_string;
  int32_t is_static;
  int32_t padding;
  uint64_t offset;
  uint64_t address;
};
static_assert(sizeof(VmStructEntry) == 48);

// "Type::_field" → offset, or address where it is static.
using Fields = std::map<std::string, uint64_t>;

constexpr const char* kWanted[] = {"CodeCache::_low_bound",     "CodeCache::_high_bound",
                                   "Universe::_collectedHeap",  "CollectedHeap::_reserved",
                                   "MemRegion::_start",         "MemRegion::_word_size",
                                   "BarrierSet::_barrier_set",  "CardTableBarrierSet::_card_table",
                                   "CardTable::_whole_heap",    "CardTable::_byte_map",
                                   "CardTable::_byte_map_size", "ClassLoaderDataGraph::_head",
                                   "ClassLoaderData::_next",    "ClassLoaderData::_klasses",
                                   "Klass::_next_link",         "Klass::_layout_helper",
                                   "InstanceKlass::_constants", "ConstantPool::_pool_holder"};

Fields ReadFields(const TargetMemory& memory, uint64_t table) {
  std::set<std::string> types;
  for (const char* wanted : kWanted) types.insert(std::string(wanted, strstr(wanted, "::")));
  Fields fields;
  for (uint64_t i = 0; i < kMaxEntries && fields.size() < std::size(kWanted); i++) {
    std::optional<VmStructEntry> entry = memory.Get<VmStructEntry>(table + i * sizeof(VmStructEntry));
    if (!entry.has_value() || entry->type_name == 0) break;
    std::string name = memory.Text(entry->type_name, kMaxName);
    if (!types.contains(name)) continue;
    name += "::" + memory.Text(entry->field_name, kMaxName);
    if (std::find(std::begin(kWanted), std::end(kWanted), name) != std::end(kWanted))
      fields[name] = entry->is_static != 0 ? entry->address : entry->offset;
  }
  return fields;
}

class Jvm {
 public:
  Jvm(const TargetMemory& memory, const std::vector<MemoryArea>& areas, Fields fields)
      : memory_(memory), areas_(areas), fields_(std::move(fields)) {}

  std::vector<KnownRange> Find() {
    FindCodeCache();
    FindHeap();
    FindCardTable();
    FindClassMetadata();
    return std::move(found_);
  }

 private:
  // What lies at a static field, or at `object`'s; 0 = this build has no such field, or it cannot be read.
  uint64_t Word(const char* field, uint64_t object = 0) const {
    auto entry = fields_.find(field);
    return entry == fields_.end() ? 0 : memory_.Get<uint64_t>(object + entry->second).value_or(0);
  }
  bool Has(std::initializer_list<const char*> names) const {
    return std::all_of(names.begin(), names.end(), [&](const char* name) { return fields_.contains(name); });
  }
  // A MemRegion that is a field of `object`.
  MemoryRange Region(const char* field, uint64_t object) const {
    const uint64_t region = object + fields_.at(field);
    const uint64_t start = Word("MemRegion::_start", region), words = Word("MemRegion::_word_size", region);
    if (start == 0 || words >= (1ull << 54) || start + words * 8 <= start) return {};
    return {start, start + words * 8};
  }

  void FindCodeCache() {
    const uint64_t low = Word("CodeCache::_low_bound"), high = Word("CodeCache::_high_bound");
    if (low != 0 && low < high) found_.push_back({low, high, KnownUse::kCodeCache, 0, ""});
  }

  void FindHeap() {
    const uint64_t heap = Word("Universe::_collectedHeap");
    if (heap == 0 || !Has({"CollectedHeap::_reserved", "MemRegion::_start", "MemRegion::_word_size"})) return;
    heap_ = Region("CollectedHeap::_reserved", heap);
    if (heap_.start != 0) found_.push_back({heap_.start, heap_.end, KnownUse::kJavaHeap, 0, ""});
  }

  // Not every collector has one; what is at its place then does not span the heap.
  void FindCardTable() {
    if (heap_.start == 0 || !Has({"CardTableBarrierSet::_card_table", "CardTable::_whole_heap"})) return;
    const uint64_t barriers = Word("BarrierSet::_barrier_set");
    const uint64_t table = barriers == 0 ? 0 : Word("CardTableBarrierSet::_card_table", barriers);
    if (table == 0 || Region("CardTable::_whole_heap", table).start != heap_.start) return;
    const uint64_t map = Word("CardTable::_byte_map", table), bytes = Word("CardTable::_byte_map_size", table);
    if (map != 0 && bytes <= heap_.end - heap_.start && map + bytes > map)
      found_.push_back({map / kPage * kPage, map + bytes, KnownUse::kGc, 0, ""});
  }

  // Each class has a constant pool that knows its class. Where the pools lie is metaspace; where classes lie and no
  // pools do is the class space. Classes may come and go meanwhile: what is not confirmed is passed over.
  void FindClassMetadata() {
    if (!Has({"ClassLoaderData::_next", "ClassLoaderData::_klasses", "Klass::_next_link", "Klass::_layout_helper",
              "InstanceKlass::_constants", "ConstantPool::_pool_holder"}))
      return;
    std::map<size_t, MemoryRange> with_classes, with_pools;  // by area
    uint64_t classes = 0, loaders = 0;
    for (uint64_t loader = Word("ClassLoaderDataGraph::_head"); loader != 0 && loaders++ < kMaxLoaders;
         loader = Word("ClassLoaderData::_next", loader)) {
      uint64_t of_loader = 0;
      for (uint64_t klass = Word("ClassLoaderData::_klasses", loader);
           klass != 0 && of_loader++ < kMaxClassesOfLoader && classes++ < kMaxClasses;
           klass = Word("Klass::_next_link", klass)) {
        // Of arrays it is negative, and they have no pool.
        if (static_cast<int32_t>(Word("Klass::_layout_helper", klass)) < 0) continue;
        const uint64_t pool = Word("InstanceKlass::_constants", klass);
        if (pool == 0 || Word("ConstantPool::_pool_holder", pool) != klass) continue;
        Widen(klass, &with_classes);
        Widen(pool, &with_pools);
      }
    }
    for (const auto& [area, pools] : with_pools) {
      // Without compressed class pointers there is no class space.
      if (auto classes_there = with_classes.find(area); classes_there != with_classes.end()) {
        AddFound(classes_there->second, KnownUse::kMetaspace);
        with_classes.erase(classes_there);
      }
      AddFound(pools, KnownUse::kMetaspace);
    }
    for (const auto& [area, classes_there] : with_classes) AddFound(classes_there, KnownUse::kClassSpace);
  }

  // The range of the area around `address` that was met so far, in root chunks: neighbours that are not HotSpot's may
  // have grown together with it. Not where an archive of shared classes is mapped.
  void Widen(uint64_t address, std::map<size_t, MemoryRange>* ranges) const {
    auto after = std::upper_bound(areas_.begin(), areas_.end(), address,
                                  [](uint64_t wanted, const MemoryArea& area) { return wanted < area.start; });
    if (after == areas_.begin()) return;
    const MemoryArea& area = *std::prev(after);
    if (address >= area.end || !area.name.empty() || !area.writable || area.shared) return;
    const uint64_t chunk = address / kRootChunk * kRootChunk;
    const MemoryRange met = {std::max(area.start, chunk), std::min(area.end, chunk + kRootChunk)};
    auto [entry, inserted] = ranges->try_emplace(static_cast<size_t>(std::prev(after) - areas_.begin()), met);
    entry->second.start = std::min(entry->second.start, met.start);
    entry->second.end = std::max(entry->second.end, met.end);
  }
  void AddFound(const MemoryRange& range, KnownUse use) { found_.push_back({range.start, range.end, use, 0, ""}); }

  const TargetMemory& memory_;
  const std::vector<MemoryArea>& areas_;
  const Fields fields_;
  MemoryRange heap_;
  std::vector<KnownRange> found_;
};

}  // namespace

std::vector<KnownRange> FindJvmRanges(const TargetMemory& memory, const std::vector<MemoryArea>& areas) {
  auto library = std::find_if(areas.begin(), areas.end(), [](const MemoryArea& area) {
    return absl::EndsWith(area.name, "/libjvm.so") && area.offset == 0;
  });
  if (library == areas.end()) return {};
  const uint64_t variable = LoadedLibrary(memory, library->start).Find("gHotSpotVMStructs");
  if (variable == 0) return {};
  return Jvm(memory, areas, ReadFields(memory, memory.Get<uint64_t>(variable).value_or(0))).Find();
}

}  // namespace cadastre
