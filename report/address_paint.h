// Ranges of addresses painted over one another: what is painted later lies on top.
//
// Thread-safety: plain values. Errors: none; an empty range paints nothing.
//
// Example:
//   AddressPaint<LedgerUse> paint;
//   paint.Over(0x1000, 0x9000, {LedgerKind::kAnonymous});
//   paint.Over(0x2000, 0x3000, {LedgerKind::kThreadStacks});
//   paint.ForEach(0, 0xa000, [](uint64_t start, uint64_t end, const LedgerUse* use) { ... });  // five parts
#ifndef CADASTRE_REPORT_ADDRESS_PAINT_H_
#define CADASTRE_REPORT_ADDRESS_PAINT_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace cadastre {

template <typename Use>
class AddressPaint {
 public:
  void Over(uint64_t start, uint64_t end, Use use) {
    if (start >= end) return;
    Cut(start);
    Cut(end);
    uses_.push_back(std::move(use));
    auto from = spans_.lower_bound(start);
    spans_.erase(from, spans_.lower_bound(end));
    spans_[start] = {end, uses_.size() - 1};
  }

  // Calls visit(start, end, use) for the parts of [start, end), use == nullptr where nothing is painted.
  template <typename Visit>
  void ForEach(uint64_t start, uint64_t end, Visit visit) const {
    auto span = spans_.upper_bound(start);
    if (span != spans_.begin() && std::prev(span)->second.first > start) --span;
    uint64_t at = start;
    for (; at < end && span != spans_.end() && span->first < end; ++span) {
      if (span->first > at) visit(at, span->first, nullptr);
      const uint64_t from = std::max(at, span->first), to = std::min(end, span->second.first);
      visit(from, to, &uses_[span->second.second]);
      at = to;
    }
    if (at < end) visit(at, end, nullptr);
  }

 private:
  void Cut(uint64_t at) {
    auto span = spans_.upper_bound(at);
    if (span == spans_.begin()) return;
    --span;
    if (span->first == at || span->second.first <= at) return;
    spans_[at] = span->second;
    span->second.first = at;
  }

  std::map<uint64_t, std::pair<uint64_t, size_t>> spans_;  // start → end, index into uses_
  std::vector<Use> uses_;
};

}  // namespace cadastre

#endif  // CADASTRE_REPORT_ADDRESS_PAINT_H_
