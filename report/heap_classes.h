// Bytes of the heap by class, from a table or from the JVM's own histogram.
//
//   CSV         header with the columns `class` and `retained_bytes` (or `shallow_bytes`), RFC 4180; others are ignored
//   histogram   what `jcmd PID GC.class_histogram` and `jmap -histo` print: shallow bytes
// Units: bytes. Errors: "FILE:LINE:COLUMN: what". Memory: bounded. Thread-safety: none.
//
// Example:
//   absl::StatusOr<HeapClasses> heap = ReadHeapClasses("heap.csv", [](std::string_view name, uint64_t bytes) {...});
#ifndef CADASTRE_REPORT_HEAP_CLASSES_H_
#define CADASTRE_REPORT_HEAP_CLASSES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cadastre {

enum class HeapMeasure { kRetained, kShallow };

struct HeapClasses {
  HeapMeasure measure = HeapMeasure::kRetained;
  std::string
      missing;  // what a histogram's total says that its rows do not have; empty = nothing is known to be missing
};

// `take` is called for each row; its error ends the reading and is given the row's place.
absl::StatusOr<HeapClasses> ReadHeapClasses(const std::string& path,
                                            const std::function<absl::Status(std::string_view, uint64_t)>& take);

}  // namespace cadastre

#endif  // CADASTRE_REPORT_HEAP_CLASSES_H_
