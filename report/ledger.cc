#include "report/ledger.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace cadastre {
namespace {

using RowKey = std::tuple<LedgerKind, std::string, std::string>;

class Builder {
 public:
  Builder(const ProcessMemory& memory, const LedgerInputs& inputs) : memory_(memory), inputs_(inputs) {}

  Ledger Build() {
    ledger_.pid = memory_.pid;
    ledger_.program = memory_.exe;
    ledger_.taken_realtime_ns = memory_.taken_realtime_ns;
    ledger_.rss_bytes = memory_.RssBytes();
    ledger_.recorded = inputs_.profile != nullptr;
    ledger_.exact = ledger_.recorded && inputs_.profile->exact();
    pieces_ = CutAreas(memory_, inputs_.profile, inputs_.attribution);
    for (const LedgerPiece& piece : pieces_) AddPiece(piece);
    if (ledger_.recorded) SplitAllocator();
    RowOf({LedgerKind::kUnexplained, "", ""});
    for (auto& [key, row] : rows_) ledger_.rows.push_back(std::move(row));
    std::stable_sort(ledger_.rows.begin(), ledger_.rows.end(), [](const LedgerRow& a, const LedgerRow& b) {
      return a.kind != b.kind ? a.kind < b.kind : a.resident_bytes > b.resident_bytes;
    });
    ledger_.allocator = memory_.allocator;
    AddLedgerChecks(memory_, inputs_, &ledger_);
    AddLedgerAdvice(memory_, inputs_, pieces_, &ledger_);
    ledger_.summary = LedgerSummary(ledger_);
    return std::move(ledger_);
  }

 private:
  LedgerRow& RowOf(const RowKey& key) {
    auto [entry, inserted] = rows_.try_emplace(key);
    LedgerRow& row = entry->second;
    if (inserted) std::tie(row.kind, row.owner, row.team) = key;
    return row;
  }

  void AddPiece(const LedgerPiece& piece) {
    LedgerRow& row = RowOf({piece.use.kind, piece.use.owner, piece.use.team});
    row.guessed |= piece.use.guessed;
    row.virtual_bytes += static_cast<int64_t>(piece.end - piece.start);
    row.committed_bytes += static_cast<int64_t>(piece.committed_bytes);
    row.resident_bytes += static_cast<int64_t>(piece.resident_bytes);
    row.shared_bytes += static_cast<int64_t>(piece.shared_bytes);
  }

  // What of a block's bytes is resident, as a share of its size. Pages that lie outside of the allocator's mappings (a
  // stack in a block) are in another row already.
  double ResidentShare(const LiveSample& sample) const {
    uint64_t at = sample.address;
    const uint64_t end = at + std::max<uint64_t>(sample.size_bytes, 1);
    double resident = 0;
    auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                  [](uint64_t wanted, const LedgerPiece& other) { return wanted < other.end; });
    for (; piece != pieces_.end() && piece->start < end; ++piece) {
      if (piece->use.kind != LedgerKind::kRetention) continue;
      const MemoryArea& area = memory_.areas[piece->area];
      const uint64_t from = std::max(at, piece->start), to = std::min(end, piece->end);
      // pagemap counts pages of zeros that Rss does not, and was read a moment later.
      const double present = static_cast<double>(ResidentIn(memory_, area, piece->start, piece->end));
      const double scale = present > 0 ? std::min(1.0, static_cast<double>(piece->resident_bytes) / present) : 0;
      resident += static_cast<double>(ResidentIn(memory_, area, from, to)) * scale;
    }
    return resident / static_cast<double>(end - at);
  }

  void SplitAllocator() {
    LedgerRow live_sum;
    std::map<RowKey, double> resident_of;
    for (const LiveSample& sample : inputs_.profile->live) {
      if (inputs_.profile->sites[sample.site].kind != SiteKind::kMalloc) continue;
      const Charge& charge = inputs_.attribution->ChargeOf(sample.site, sample.thread);
      const RowKey key = {LedgerKind::kLiveMalloc, charge.module, charge.team};
      LedgerRow& row = RowOf(key);
      const double share = ResidentShare(sample), weight = static_cast<double>(sample.weight_bytes);
      const double variance =
          share * share * weight * (weight - static_cast<double>(std::min(sample.size_bytes, sample.weight_bytes)));
      row.guessed |= charge.guessed;
      row.estimate = true;
      row.virtual_bytes += static_cast<int64_t>(sample.weight_bytes);
      row.committed_bytes += static_cast<int64_t>(sample.weight_bytes);
      row.variance += variance;
      resident_of[key] += weight * share;
      live_sum.virtual_bytes += static_cast<int64_t>(sample.weight_bytes);
      live_sum.variance += variance;
    }
    int64_t rounded_sum = 0;
    for (const auto& [key, bytes] : resident_of) {
      const int64_t rounded = std::llround(bytes);
      RowOf(key).resident_bytes = rounded;
      rounded_sum += rounded;
    }
    if (rounded_sum == 0 && !rows_.contains({LedgerKind::kRetention, "", ""})) return;
    LedgerRow& retention = RowOf({LedgerKind::kRetention, "", ""});
    retention.estimate = true;
    retention.variance = live_sum.variance;
    retention.virtual_bytes -= live_sum.virtual_bytes;
    retention.committed_bytes -= live_sum.virtual_bytes;
    retention.resident_bytes -= rounded_sum;
  }

  const ProcessMemory& memory_;
  const LedgerInputs& inputs_;
  std::vector<LedgerPiece> pieces_;
  std::map<RowKey, LedgerRow> rows_;
  Ledger ledger_;
};

}  // namespace

double LedgerRow::StandardError() const { return std::sqrt(variance); }

LedgerRow Ledger::Sum(LedgerKind kind) const {
  LedgerRow sum;
  sum.kind = kind;
  for (const LedgerRow& row : rows) {
    if (row.kind != kind) continue;
    sum.virtual_bytes += row.virtual_bytes;
    sum.committed_bytes += row.committed_bytes;
    sum.resident_bytes += row.resident_bytes;
    sum.shared_bytes += row.shared_bytes;
    sum.estimate |= row.estimate;
    sum.variance += row.variance;
  }
  return sum;
}

Ledger BuildLedger(const ProcessMemory& memory, const LedgerInputs& inputs) { return Builder(memory, inputs).Build(); }

}  // namespace cadastre
