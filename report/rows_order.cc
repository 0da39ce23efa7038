#include "report/rows_order.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

namespace cadastre {
namespace {

constexpr size_t kMaxRowSuggestions = 5;

}  // namespace

void DropOtherKind(Metric metric, Report* report) {
  auto is_other = [metric](const auto& row) {
    const Tally& tally = row.tally;
    const bool has_blocks = tally.live_bytes > 0 || tally.allocated_bytes > 0 || tally.peak_bytes > 0 ||
                            tally.samples > 0 || tally.live_samples > 0;
    return metric == Metric::kMapped ? tally.mapped_bytes == 0 : !has_blocks && tally.mapped_bytes > 0;
  };
  for (std::vector<Row>* rows :
       {&report->modules, &report->teams, &report->libraries, &report->threads, &report->holders}) {
    std::erase_if(*rows, is_other);
  }
  std::erase_if(report->sites, is_other);
}

void SortRows(Metric metric, Report* report) {
  auto heavier = [metric](const auto& a, const auto& b) {
    double left = EstimateOf(a.tally, metric).value, right = EstimateOf(b.tally, metric).value;
    if (left != right) return left > right;
    if (a.tally.live_bytes != b.tally.live_bytes) return a.tally.live_bytes > b.tally.live_bytes;
    if (a.tally.allocated_bytes != b.tally.allocated_bytes) return a.tally.allocated_bytes > b.tally.allocated_bytes;
    if constexpr (std::is_same_v<std::decay_t<decltype(a)>, SiteRow>) {
      return a.site != b.site ? a.site < b.site : a.module < b.module;
    } else {
      return a.name < b.name;
    }
  };
  for (std::vector<Row>* rows :
       {&report->modules, &report->teams, &report->libraries, &report->threads, &report->holders}) {
    std::sort(rows->begin(), rows->end(), heavier);
  }
  for (SharedRow& shared : report->shared) std::sort(shared.creators.begin(), shared.creators.end(), heavier);
  std::stable_sort(report->shared.begin(), report->shared.end(), [metric](const auto& a, const auto& b) {
    return EstimateOf(a.tally, metric).value > EstimateOf(b.tally, metric).value;
  });
  // A site's row is large: places are sorted, then each row is moved once.
  std::vector<uint32_t> order(report->sites.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<SiteRow>& sites = report->sites;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return heavier(sites[a], sites[b]); });
  std::vector<SiteRow> sorted;
  sorted.reserve(order.size());
  for (uint32_t place : order) sorted.push_back(std::move(report->sites[place]));
  report->sites = std::move(sorted);
  bool by_live = metric != Metric::kAllocated;
  std::erase_if(report->suggestions, [by_live](const RuleSuggestion& suggestion) {
    return (by_live ? suggestion.live_bytes : suggestion.allocated_bytes) == 0;
  });
  std::sort(report->suggestions.begin(), report->suggestions.end(),
            [by_live](const RuleSuggestion& a, const RuleSuggestion& b) {
              uint64_t left = by_live ? a.live_bytes : a.allocated_bytes,
                       right = by_live ? b.live_bytes : b.allocated_bytes;
              return left != right ? left > right : a.prefix < b.prefix;
            });
  if (report->suggestions.size() > kMaxRowSuggestions) report->suggestions.resize(kMaxRowSuggestions);
}

}  // namespace cadastre
