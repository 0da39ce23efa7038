#include "symbolizer/column_text.h"

#include <algorithm>

namespace cadastre {
namespace {

constexpr size_t kShort = 256;  // bytes: less is not worth a table of frequencies, and goes with the next column

}  // namespace

void ColumnText::EndColumn() {
  if (text.size() - (ends.empty() ? 0 : ends.back()) >= kShort) ends.push_back(text.size());
}

void ColumnText::Clear() {
  text.clear();
  ends.clear();
}

void PutColumn(const std::vector<uint64_t>& values, ColumnText* columns) {
  for (uint64_t value : values) PutVarint(value, &columns->text);
  columns->EndColumn();
}

std::vector<uint64_t> ReadColumn(uint64_t count, PackedReader* in) {
  std::vector<uint64_t> values(count);
  for (uint64_t& value : values) value = in->Varint();
  return values;
}

void PutSet(const std::vector<uint64_t>& values, ColumnText* columns) {
  PutVarint(values.size(), &columns->text);
  uint64_t before = 0;
  for (uint64_t value : values) {
    PutVarint(value - before, &columns->text);
    before = value;
  }
  columns->EndColumn();
}

std::vector<uint64_t> Set(PackedReader* in) {
  std::vector<uint64_t> values = ReadColumn(in->Count(1), in);
  for (size_t i = 1; i < values.size(); i++) values[i] += values[i - 1];
  return values;
}

std::vector<uint64_t> NumberValues(std::vector<uint64_t>* values) {
  std::vector<uint64_t> distinct = *values;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (uint64_t& value : *values)
    value = static_cast<uint64_t>(std::lower_bound(distinct.begin(), distinct.end(), value) - distinct.begin());
  return distinct;
}

}  // namespace cadastre
