// Which part of a JVM a mapping of libjvm's serves, by the stack that asked for it, and by what HotSpot's own memory
// tracking calls it.
//
// Errors: none; what is not known is kOtherHotSpot. Thread-safety: pure functions.
//
// Example: HotSpotPart part = PartOfStack(attribution.FramesOf(site));
#ifndef CADASTRE_REPORT_HOTSPOT_MEMORY_H_
#define CADASTRE_REPORT_HOTSPOT_MEMORY_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "report/attribution.h"
#include "symbolizer/profile.h"

namespace cadastre {

enum class HotSpotPart {
  kNone,  // not libjvm's
  kJavaHeap,
  kMetaspace,
  kClassSpace,
  kCodeCache,
  kGc,
  kCds,
  kOther,
  // The code that commits is the same for both; which one it is depends on the reservation around it.
  kMetaspaceOrClassSpace,
  kJavaHeapOrGc,
};

// `frames`: leaf first, without libcadastre's own.
HotSpotPart PartOfStack(const std::vector<const Frame*>& frames);

// Of each of the profile's mappings; kNone for those of others. Both of the undecided parts are decided where the
// reservation around them is known.
std::vector<HotSpotPart> PartsOfMappings(const Profile& profile, Attribution* attribution);

// Of a category of NMT: "Java Heap", "Class", "GC", ...; kNone for thread stacks, which have a row of their own.
HotSpotPart PartOfNmtCategory(absl::string_view category);

// Is the leaf-most frame in libjvm HotSpot's own malloc, which NMT counts?
bool IsOsMalloc(const std::vector<const Frame*>& frames);

// Of those: was it asked for before NMT began? It keeps such blocks in a table of its own (JDK 17 and later) and counts
// neither them nor the table.
bool IsBeforeNmt(const std::vector<const Frame*>& frames);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_HOTSPOT_MEMORY_H_
