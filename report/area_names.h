// What the name of an area of smaps says.
//
// Thread-safety: pure functions. Errors: none.
//
// Example: if (IsAnonymous(area)) ...
#ifndef CADASTRE_REPORT_AREA_NAMES_H_
#define CADASTRE_REPORT_AREA_NAMES_H_

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "symbolizer/process_memory.h"

namespace cadastre {

inline absl::string_view WithoutDeleted(absl::string_view name) {
  absl::ConsumeSuffix(&name, " (deleted)");
  return name;
}

// A private mapping of /dev/zero is how anonymous memory was had before MAP_ANONYMOUS.
inline bool IsAnonymous(const MemoryArea& area) {
  return area.name.empty() || absl::StartsWith(area.name, "[anon") || area.name == "[heap]" ||
         (area.name == "/dev/zero" && !area.shared);
}

// HotSpot's archive of shared classes.
inline bool IsArchive(const MemoryArea& area) { return absl::EndsWith(WithoutDeleted(area.name), ".jsa"); }

// Names of areas that have code: the executable and its libraries, each with all its areas.
inline std::set<std::string> LibraryNames(const std::vector<MemoryArea>& areas) {
  std::set<std::string> names;
  for (const MemoryArea& area : areas) {
    if (area.executable && !area.name.empty() && area.name[0] == '/') names.insert(area.name);
  }
  return names;
}

}  // namespace cadastre

#endif  // CADASTRE_REPORT_AREA_NAMES_H_
