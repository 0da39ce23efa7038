// Columns of numbers one behind the other, as varints. Each has frequencies of its own: where they end is kept, so that
// packed_writer can compress each by itself.
//
// Units: numbers. Errors: those of PackedReader. Thread-safety: plain values.
//
// Example:
//   ColumnText columns;
//   PutColumn(sizes, &columns);
//   PackedReader in(columns.text);
//   std::vector<uint64_t> again = ReadColumn(sizes.size(), &in);
#ifndef CADASTRE_SYMBOLIZER_COLUMN_TEXT_H_
#define CADASTRE_SYMBOLIZER_COLUMN_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "symbolizer/packed_text.h"

namespace cadastre {

struct ColumnText {
  std::string text;
  std::vector<size_t> ends;  // ascending; what lies behind the last one is compressed together

  void EndColumn();
  void Clear();
};

void PutColumn(const std::vector<uint64_t>& values, ColumnText* columns);
std::vector<uint64_t> ReadColumn(uint64_t count, PackedReader* in);

// A set of numbers: how many there are and each as the difference from the one before. `values` ascend.
void PutSet(const std::vector<uint64_t>& values, ColumnText* columns);
std::vector<uint64_t> Set(PackedReader* in);

// Each value becomes its number among the distinct ones, which are returned, ascending.
std::vector<uint64_t> NumberValues(std::vector<uint64_t>* values);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_COLUMN_TEXT_H_
