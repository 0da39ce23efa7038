#include "interposer/jvm/vm_flags.h"

#include <string.h>

#include "interposer/jvm/code_cache.h"

namespace cadastre {
namespace {

struct Collector {
  const char* flag;
  const char* name;
};
constexpr Collector kCollectors[] = {
    {"UseG1GC", "G1"},
    {"UseSerialGC", "serial"},
    {"UseParallelGC", "parallel"},
    {"UseZGC", "Z"},
    {"UseShenandoahGC", "Shenandoah"},
    {"UseConcMarkSweepGC", "CMS"},
    {"UseEpsilonGC", "epsilon"},
};
constexpr uint64_t kMostFlags = 100000;

// The first flag that `wanted` takes by its name: the address of its value; 0 = there is none.
template <typename Wanted>
uint64_t FindFlag(const VmLayout& layout, const Wanted& wanted) {
  if (layout.flags == nullptr || layout.flag_count == nullptr || layout.flag_name < 0 || layout.flag_address < 0 ||
      layout.flag_bytes <= 0) {
    return 0;
  }
  const uint64_t count = *layout.flag_count < kMostFlags ? *layout.flag_count : kMostFlags;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t flag = *layout.flags + i * static_cast<uint64_t>(layout.flag_bytes);
    const char* name = LoadField<const char*>(flag, layout.flag_name);
    const uint64_t value = LoadField<uint64_t>(flag, layout.flag_address);
    if (name != nullptr && value != 0 && wanted(name, value)) return value;
  }
  return 0;
}

bool IsOn(uint64_t value) { return LoadField<uint8_t>(value, 0) != 0; }

}  // namespace

const char* CollectorInUse(const VmLayout& layout) {
  const char* found = nullptr;
  FindFlag(layout, [&found](const char* name, uint64_t value) {
    if (strncmp(name, "Use", 3) != 0) return false;
    for (const Collector& collector : kCollectors) {
      if (strcmp(name, collector.flag) == 0 && IsOn(value)) found = collector.name;
    }
    return found != nullptr;
  });
  return found;
}

bool IsFlagOn(const VmLayout& layout, const char* name, bool otherwise) {
  const uint64_t value = FindFlag(layout, [name](const char* flag, uint64_t) { return strcmp(flag, name) == 0; });
  return value != 0 ? IsOn(value) : otherwise;
}

}  // namespace cadastre
