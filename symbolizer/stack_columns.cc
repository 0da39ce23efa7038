#include "symbolizer/stack_columns.h"

#include <algorithm>
#include <vector>

namespace cadastre {
namespace {

// Words at the root end that two stacks have in common.
uint64_t SharedWords(const uint64_t* a, uint64_t a_count, const uint64_t* b, uint64_t b_count) {
  uint64_t shared = 0;
  while (shared < a_count && shared < b_count && a[a_count - 1 - shared] == b[b_count - 1 - shared]) shared++;
  return shared;
}

}  // namespace

void EncodeStacks(absl::Span<const StackPlace> stacks, const uint64_t* words, uint64_t first, ColumnText* columns) {
  std::vector<uint64_t> gaps, left, entered, own_words;
  const uint64_t* before = nullptr;
  uint64_t before_count = 0, end = first;
  for (const StackPlace& stack : stacks) {
    const uint64_t* at = words + (stack.start - first);
    const uint64_t shared = SharedWords(at, stack.count, before, before_count);
    gaps.push_back(stack.start - end);
    left.push_back(before_count - shared);
    entered.push_back(stack.count - shared);
    own_words.insert(own_words.end(), at, at + stack.count - shared);
    before = at;
    before_count = stack.count;
    end = stack.start + stack.count;
  }
  const std::vector<uint64_t> distinct = NumberValues(&own_words);
  PutSet(distinct, columns);
  PutVarint(stacks.size(), &columns->text);
  for (const std::vector<uint64_t>* column : {&gaps, &left, &entered, &own_words}) PutColumn(*column, columns);
}

bool DecodeStacks(const std::string& text, uint64_t* words, uint64_t count) {
  PackedReader in(text);
  const std::vector<uint64_t> distinct = Set(&in);
  const uint64_t stacks = in.Count(3);
  const std::vector<uint64_t> gaps = ReadColumn(stacks, &in), left = ReadColumn(stacks, &in),
                              entered = ReadColumn(stacks, &in);
  const uint64_t* before = nullptr;
  uint64_t before_count = 0, end = 0;
  for (uint64_t i = 0; i < stacks; i++) {
    if (!in.ok() || gaps[i] > count - end || left[i] > before_count) return false;
    const uint64_t shared = before_count - left[i], room = count - end - gaps[i];
    if (shared > room || entered[i] > room - shared) return false;
    uint64_t* at = words + end + gaps[i];
    for (uint64_t j = 0; j < entered[i]; j++) {
      const uint64_t number = in.Varint();
      if (!in.ok() || number >= distinct.size()) return false;
      at[j] = distinct[number];
    }
    if (shared > 0) std::copy_n(before + left[i], shared, at + entered[i]);
    before = at;
    before_count = entered[i] + shared;
    end += gaps[i] + before_count;
  }
  return in.ok() && in.left() == 0;
}

}  // namespace cadastre
