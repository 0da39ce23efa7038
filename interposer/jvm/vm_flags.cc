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

}  // namespace

const char* CollectorInUse(const VmLayout& layout) {
  if (layout.flags == nullptr || layout.flag_count == nullptr || layout.flag_name < 0 || layout.flag_address < 0 ||
      layout.flag_bytes <= 0) {
    return nullptr;
  }
  const uint64_t count = *layout.flag_count < kMostFlags ? *layout.flag_count : kMostFlags;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t flag = *layout.flags + i * static_cast<uint64_t>(layout.flag_bytes);
    const char* name = LoadField<const char*>(flag, layout.flag_name);
    if (name == nullptr || strncmp(name, "Use", 3) != 0) continue;
    for (const Collector& collector : kCollectors) {
      if (strcmp(name, collector.flag) != 0) continue;
      const uint64_t value = LoadField<uint64_t>(flag, layout.flag_address);
      if (value != 0 && LoadField<uint8_t>(value, 0) != 0) return collector.name;
    }
  }
  return nullptr;
}

}  // namespace cadastre
