#include "symbolizer/stack_columns.h"

#include <algorithm>
#include <vector>

#include "symbolizer/packed_text.h"

namespace cadastre {
namespace {

// Words at the root end that two stacks have in common.
uint64_t SharedWords(const uint64_t* a, uint64_t a_count, const uint64_t* b, uint64_t b_count) {
  uint64_t shared = 0;
  while (shared < a_count && shared < b_count && a[a_count - 1 - shared] == b[b_count - 1 - shared]) shared++;
  return shared;
}

void PutColumn(const std::vector<uint64_t>& column, std::string* text) {
  for (uint64_t value : column) PutVarint(value, text);
}

std::vector<uint64_t> Column(uint64_t count, PackedReader* in) {
  std::vector<uint64_t> column(count);
  for (uint64_t& value : column) value = in->Varint();
  return column;
}

}  // namespace

void EncodeStacks(absl::Span<const StackPlace> stacks, const uint64_t* words, uint64_t first, std::string* text) {
  std::vector<uint64_t> gaps, counts, shares, rest;
  const uint64_t* before = nullptr;
  uint64_t before_count = 0, end = first;
  for (const StackPlace& stack : stacks) {
    const uint64_t* at = words + (stack.start - first);
    const uint64_t shared = SharedWords(at, stack.count, before, before_count);
    gaps.push_back(stack.start - end);
    counts.push_back(stack.count);
    shares.push_back(shared);
    rest.insert(rest.end(), at, at + stack.count - shared);
    before = at;
    before_count = stack.count;
    end = stack.start + stack.count;
  }
  std::vector<uint64_t> distinct = rest;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  PutVarint(distinct.size(), text);
  for (size_t i = 0; i < distinct.size(); i++) PutVarint(distinct[i] - (i == 0 ? 0 : distinct[i - 1]), text);
  for (uint64_t& word : rest) word = std::lower_bound(distinct.begin(), distinct.end(), word) - distinct.begin();
  PutVarint(stacks.size(), text);
  for (const std::vector<uint64_t>* column : {&gaps, &counts, &shares, &rest}) PutColumn(*column, text);
}

bool DecodeStacks(const std::string& text, uint64_t* words, uint64_t count) {
  PackedReader in(text);
  std::vector<uint64_t> distinct = Column(in.Count(1), &in);
  for (size_t i = 1; i < distinct.size(); i++) distinct[i] += distinct[i - 1];
  const uint64_t stacks = in.Count(3);
  const std::vector<uint64_t> gaps = Column(stacks, &in), counts = Column(stacks, &in), shares = Column(stacks, &in);
  const uint64_t* before = nullptr;
  uint64_t before_count = 0, end = 0;
  for (uint64_t i = 0; i < stacks; i++) {
    if (!in.ok() || gaps[i] > count - end || counts[i] > count - end - gaps[i] || shares[i] > counts[i] ||
        shares[i] > before_count)
      return false;
    uint64_t* at = words + end + gaps[i];
    const uint64_t own = counts[i] - shares[i];
    for (uint64_t j = 0; j < own; j++) {
      const uint64_t number = in.Varint();
      if (!in.ok() || number >= distinct.size()) return false;
      at[j] = distinct[number];
    }
    if (shares[i] > 0) std::copy_n(before + before_count - shares[i], shares[i], at + own);
    before = at;
    before_count = counts[i];
    end += gaps[i] + counts[i];
  }
  return in.ok() && in.left() == 0;
}

}  // namespace cadastre
