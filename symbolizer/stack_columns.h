// Stacks as they lie in the frames region, each told from the one before: stacks that are recorded one after another
// share most of their outer frames.
//
// Text: varint count of distinct words, and these ascending, as differences; varint count of stacks; then for all
// stacks in turn, each as one column: where it begins (words behind the end of the one before, or behind `first`), how
// many words at the leaf end of the one before are left, how many are entered instead; and those, by number. Units:
// words of 8 bytes. Errors: DecodeStacks is false for what cannot be, and writes nothing beyond `count` words.
// Thread-safety: pure functions.
//
// Example:
//   ColumnText columns;
//   EncodeStacks(stacks, words, first, &columns);   // words[0] is word `first` of the region
//   bool whole = DecodeStacks(columns.text, again.data(), count);
#ifndef CADASTRE_SYMBOLIZER_STACK_COLUMNS_H_
#define CADASTRE_SYMBOLIZER_STACK_COLUMNS_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "symbolizer/column_text.h"

namespace cadastre {

struct StackPlace {
  uint64_t start = 0;  // word of the frames region
  uint32_t count = 0;
};

// `stacks` ascend and do not overlap.
void EncodeStacks(absl::Span<const StackPlace> stacks, const uint64_t* words, uint64_t first, ColumnText* columns);
bool DecodeStacks(const std::string& text, uint64_t* words, uint64_t count);

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_STACK_COLUMNS_H_
