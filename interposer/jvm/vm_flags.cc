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

// Calls see(name, its first byte is not 0) for each flag until that returns true.
template <typename See>
void ForEachFlag(const VmLayout& layout, const See& see) {
  if (layout.flags == nullptr || layout.flag_count == nullptr || layout.flag_name < 0 || layout.flag_address < 0 ||
      layout.flag_bytes <= 0) {
    return;
  }
  const uint64_t count = *layout.flag_count < kMostFlags ? *layout.flag_count : kMostFlags;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t flag = *layout.flags + i * static_cast<uint64_t>(layout.flag_bytes);
    const char* name = LoadField<const char*>(flag, layout.flag_name);
    if (name == nullptr) continue;
    const uint64_t value = LoadField<uint64_t>(flag, layout.flag_address);
    if (value != 0 && see(name, LoadField<uint8_t>(value, 0) != 0)) return;
  }
}

}  // namespace

const char* CollectorInUse(const VmLayout& layout) {
  const char* in_use = nullptr;
  ForEachFlag(layout, [&](const char* name, bool on) {
    for (const Collector& collector : kCollectors) {
      if (on && strcmp(name, collector.flag) == 0) in_use = collector.name;
    }
    return in_use != nullptr;
  });
  return in_use;
}

bool IsFlagOn(const VmLayout& layout, const char* wanted, bool* known) {
  bool found = false, value = false;
  ForEachFlag(layout, [&](const char* name, bool on) {
    if (strcmp(name, wanted) != 0) return false;
    found = true;
    value = on;
    return true;
  });
  if (known != nullptr) *known = found;
  return value;
}

}  // namespace cadastre
