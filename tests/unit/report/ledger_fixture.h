// What tests of the ledger are made of: areas as smaps has them, and a recorded process.
#ifndef CADASTRE_TESTS_UNIT_REPORT_LEDGER_FIXTURE_H_
#define CADASTRE_TESTS_UNIT_REPORT_LEDGER_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "report/ledger.h"
#include "tests/support/profile_builder.h"

namespace cadastre {

inline constexpr uint64_t kMiB64 = 1 << 20;

inline MemoryArea Area(uint64_t start, uint64_t end, const char* name, uint64_t rss_bytes) {
  MemoryArea area;
  area.start = start;
  area.end = end;
  area.name = name;
  area.rss_bytes = rss_bytes;
  area.private_bytes = rss_bytes;
  area.anonymous_bytes = rss_bytes;
  area.readable = area.writable = true;
  return area;
}

// Code of a library.
inline MemoryArea Text(uint64_t start, uint64_t end, const char* path, uint64_t rss_bytes) {
  MemoryArea area = Area(start, end, path, rss_bytes);
  area.anonymous_bytes = 0;
  area.executable = true;
  area.writable = false;
  return area;
}

inline MemoryArea Resident(ProcessMemory* memory, uint64_t start, uint64_t end, std::vector<MemoryRange> pages) {
  MemoryArea area = Area(start, end, "", 0);
  area.pages_known = true;
  for (const MemoryRange& range : pages) {
    area.rss_bytes += range.end - range.start;
    memory->resident.push_back(range);
  }
  area.private_bytes = area.rss_bytes;
  return area;
}

// A recorded process, read back from the bytes of a profile.
struct Recorded {
  explicit Recorded(const testing::ProfileBuilder& builder, OwnerRules owner_rules = {})
      : bytes(builder.Build()), rules(std::move(owner_rules)) {
    profile = *ParseProfile("test.cad", bytes.data(), bytes.size());
    symbolizer = std::make_unique<Symbolizer>(profile, SymbolizerOptions{});
    attribution = std::make_unique<Attribution>(profile, rules, symbolizer.get());
  }
  Ledger Of(const ProcessMemory& memory) { return BuildLedger(memory, {&profile, attribution.get()}); }
  std::string bytes;
  Profile profile;
  OwnerRules rules;
  std::unique_ptr<Symbolizer> symbolizer;
  std::unique_ptr<Attribution> attribution;
};

inline int64_t SumOf(const Ledger& ledger) {
  int64_t sum = 0;
  for (const LedgerRow& row : ledger.rows) sum += row.resident_bytes;
  return sum;
}

inline int64_t ResidentOf(const Ledger& ledger, LedgerKind kind) { return ledger.Sum(kind).resident_bytes; }

}  // namespace cadastre

#endif  // CADASTRE_TESTS_UNIT_REPORT_LEDGER_FIXTURE_H_
