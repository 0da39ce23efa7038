#include "symbolizer/rule_matcher.h"

#include <algorithm>

namespace cadastre {
namespace {

using Edge = std::pair<char, uint32_t>;

uint32_t CommonLength(std::string_view a, std::string_view b) {
  size_t most = std::min(a.size(), b.size()), length = 0;
  while (length < most && a[length] == b[length]) length++;
  return static_cast<uint32_t>(length);
}

}  // namespace

void RuleMatcher::Add(std::string_view prefix, int rule) {
  uint32_t node = 0;
  while (!prefix.empty()) {
    uint32_t child = Step(node, prefix[0]);
    if (child == kNowhere) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({static_cast<uint32_t>(edges_.size()), static_cast<uint32_t>(prefix.size()), -1, {}});
      edges_ += prefix;
      std::vector<Edge>& next = nodes_[node].next;
      next.insert(std::lower_bound(next.begin(), next.end(), Edge(prefix[0], 0)), {prefix[0], child});
      node = child;
      break;
    }
    uint32_t common = CommonLength(EdgeOf(nodes_[child]), prefix);
    if (common < nodes_[child].edge_length) Split(child, common);
    prefix.remove_prefix(common);
    node = child;
  }
  if (nodes_[node].rule < 0) nodes_[node].rule = rule;
}

void RuleMatcher::Split(uint32_t node, uint32_t length) {
  // The node keeps its number, as what leads to it does; what followed goes behind the new one.
  uint32_t lower = static_cast<uint32_t>(nodes_.size());
  Node rest = std::move(nodes_[node]);
  Node upper{rest.edge, length, -1, {{edges_[rest.edge + length], lower}}};
  rest.edge += length;
  rest.edge_length -= length;
  nodes_[node] = std::move(upper);
  nodes_.push_back(std::move(rest));
}

uint32_t RuleMatcher::Step(uint32_t node, char c) const {
  const std::vector<Edge>& next = nodes_[node].next;
  auto at = std::lower_bound(next.begin(), next.end(), Edge(c, 0));
  return at == next.end() || at->first != c ? kNowhere : at->second;
}

RuleMatch RuleMatcher::Longest(std::string_view text) const {
  RuleMatch best{nodes_[0].rule, 0};
  uint32_t node = 0;
  for (size_t length = 0; length < text.size();) {
    node = Step(node, text[length]);
    if (node == kNowhere) break;
    std::string_view edge = EdgeOf(nodes_[node]);
    if (text.compare(length, edge.size(), edge) != 0) break;
    length += edge.size();
    if (nodes_[node].rule >= 0) best = {nodes_[node].rule, length};
  }
  return best;
}

bool RuleMatcher::LeadsOn(std::string_view text) const {
  uint32_t node = 0;
  while (!text.empty()) {
    node = Step(node, text[0]);
    if (node == kNowhere) return false;
    std::string_view edge = EdgeOf(nodes_[node]);
    uint32_t common = CommonLength(edge, text);
    if (common == text.size() && common < edge.size()) return true;  // the text ends inside an edge
    if (common < edge.size()) return false;
    text.remove_prefix(common);
  }
  return !nodes_[node].next.empty();
}

}  // namespace cadastre
