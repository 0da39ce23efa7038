#include "report/ledger.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace cadastre {
namespace {

using RowKey = std::tuple<LedgerKind, std::string, std::string>;

class LedgerBuilder {
 public:
  LedgerBuilder(const ProcessMemory& memory, const LedgerInputs& inputs) : memory_(memory), inputs_(inputs) {}

  Ledger Build() {
    ledger_.pid = memory_.pid;
    ledger_.program = memory_.exe;
    ledger_.taken_realtime_ns = memory_.taken_realtime_ns;
    ledger_.rss_bytes = memory_.RssBytes();
    ledger_.recorded = inputs_.profile != nullptr;
    ledger_.exact = ledger_.recorded && inputs_.profile->exact();
    pieces_ = CutAreas(memory_, inputs_);
    for (const LedgerPiece& piece : pieces_) AddPiece(piece);
    if (ledger_.recorded) SplitAllocator();
    RowOf({LedgerKind::kUnexplained, "", ""});
    for (auto& [key, row] : rows_) {
      // What is resident is committed, also where either is a difference of estimates, or a page that was written is
      // not accessible any more.
      row.committed_bytes = std::max({row.committed_bytes, row.resident_bytes, int64_t{0}});
      ledger_.rows.push_back(std::move(row));
    }
    std::stable_sort(ledger_.rows.begin(), ledger_.rows.end(), [](const LedgerRow& a, const LedgerRow& b) {
      return a.kind != b.kind ? a.kind < b.kind : a.resident_bytes > b.resident_bytes;
    });
    ledger_.threads = ThreadStacks(memory_, pieces_, inputs_);
    ledger_.allocator = memory_.allocator;
    AddLedgerChecks(memory_, inputs_, pieces_, &ledger_);
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

  // What of a block's bytes is address space of the allocator's, committed, resident: as shares of its size. What lies
  // elsewhere (a stack in a block) is in another row already.
  struct Shares {
    double mapped = 0, committed = 0, resident = 0;
  };
  Shares SharesOf(const LiveSample& sample) const {
    const uint64_t at = sample.address, end = at + std::max<uint64_t>(sample.size_bytes, 1);
    Shares shares;
    auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                  [](uint64_t wanted, const LedgerPiece& other) { return wanted < other.end; });
    for (; piece != pieces_.end() && piece->start < end; ++piece) {
      if (piece->use.kind != LedgerKind::kRetention) continue;
      const double bytes = static_cast<double>(std::min(end, piece->end) - std::max(at, piece->start));
      const double resident = ResidentWithin(memory_, *piece, at, end);
      shares.mapped += bytes;
      shares.committed += piece->committed_bytes == piece->end - piece->start ? bytes : resident;
      shares.resident += resident;
    }
    const double size = static_cast<double>(end - at);
    return {shares.mapped / size, shares.committed / size, shares.resident / size};
  }

  void SplitAllocator() {
    struct Sums {
      double mapped = 0, committed = 0, resident = 0, variance = 0;
    };
    std::map<RowKey, Sums> live;
    for (const LiveSample& sample : inputs_.profile->live) {
      if (inputs_.profile->sites[sample.site].kind != SiteKind::kMalloc) continue;
      const Charge& charge = inputs_.attribution->ChargeOf(sample.site, sample.thread);
      const RowKey key = {LedgerKind::kLiveMalloc, charge.module, charge.team};
      RowOf(key).guessed |= charge.guessed;
      const Shares shares = SharesOf(sample);
      const double weight = static_cast<double>(sample.weight_bytes);
      Sums& sums = live[key];
      sums.mapped += weight * shares.mapped;
      sums.committed += weight * shares.committed;
      sums.resident += weight * shares.resident;
      sums.variance += shares.resident * shares.resident * weight *
                       (weight - static_cast<double>(std::min(sample.size_bytes, sample.weight_bytes)));
    }
    LedgerRow whole;
    for (const auto& [key, sums] : live) {
      LedgerRow& row = RowOf(key);
      row.estimate = true;
      row.virtual_bytes = std::llround(sums.mapped);
      row.committed_bytes = std::llround(sums.committed);
      row.resident_bytes = std::llround(sums.resident);
      row.variance = sums.variance;
      whole.virtual_bytes += row.virtual_bytes;
      whole.committed_bytes += row.committed_bytes;
      whole.resident_bytes += row.resident_bytes;
      whole.variance += row.variance;
    }
    if (whole.resident_bytes == 0 && !rows_.contains({LedgerKind::kRetention, "", ""})) return;
    LedgerRow& retention = RowOf({LedgerKind::kRetention, "", ""});
    retention.estimate = true;
    retention.variance = whole.variance;
    retention.virtual_bytes -= whole.virtual_bytes;
    retention.committed_bytes -= whole.committed_bytes;
    retention.resident_bytes -= whole.resident_bytes;
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

Ledger BuildLedger(const ProcessMemory& memory, const LedgerInputs& inputs) {
  return LedgerBuilder(memory, inputs).Build();
}

}  // namespace cadastre
