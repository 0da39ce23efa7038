#include "symbolizer/rule_matcher.h"

#include <algorithm>

namespace cadastre {

void RuleMatcher::Add(std::string_view prefix, int rule) {
  uint32_t node = 0;
  for (char c : prefix) {
    auto& next = nodes_[node].next;
    auto at = std::lower_bound(next.begin(), next.end(), std::pair<char, uint32_t>(c, 0));
    if (at == next.end() || at->first != c) {
      uint32_t added = nodes_.size();
      next.insert(at, {c, added});
      nodes_.emplace_back();  // `next` is not used any more: it moved
      node = added;
    } else {
      node = at->second;
    }
  }
  if (nodes_[node].rule < 0) nodes_[node].rule = rule;
}

uint32_t RuleMatcher::Step(uint32_t node, char c) const {
  const auto& next = nodes_[node].next;
  auto at = std::lower_bound(next.begin(), next.end(), std::pair<char, uint32_t>(c, 0));
  return at == next.end() || at->first != c ? kNowhere : at->second;
}

RuleMatch RuleMatcher::Longest(std::string_view text) const {
  RuleMatch best{nodes_[0].rule, 0};
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); i++) {
    node = Step(node, text[i]);
    if (node == kNowhere) break;
    if (nodes_[node].rule >= 0) best = {nodes_[node].rule, i + 1};
  }
  return best;
}

bool RuleMatcher::LeadsOn(std::string_view text) const {
  uint32_t node = 0;
  for (char c : text) {
    node = Step(node, c);
    if (node == kNowhere) return false;
  }
  return !nodes_[node].next.empty();
}

}  // namespace cadastre
