// A compiled set of prefixes: which rule has the longest prefix of a text. One matcher per key kind.
//
// A radix trie: each edge is a run of characters, nodes stand where prefixes end or part. Speed: one pass over the
// text, one step for each node on the way, however many rules there are. Memory: at most two nodes for each prefix, and
// the prefixes' characters. Errors: none. Thread-safety: const after the last Add.
//
// Example:
//   RuleMatcher matcher;
//   matcher.Add("acme::", 0);
//   matcher.Add("acme::billing::", 1);
//   matcher.Longest("acme::billing::Writer::Grow");  // {rule 1, length 15}
#ifndef CADASTRE_SYMBOLIZER_RULE_MATCHER_H_
#define CADASTRE_SYMBOLIZER_RULE_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cadastre {

struct RuleMatch {
  int rule = -1;  // -1: none
  size_t length = 0;
};

class RuleMatcher {
 public:
  RuleMatcher() : nodes_(1) {}

  // Of equal prefixes the one that was added first counts.
  void Add(std::string_view prefix, int rule);
  RuleMatch Longest(std::string_view text) const;
  // True if some prefix begins with `text` and goes on.
  bool LeadsOn(std::string_view text) const;

 private:
  struct Node {
    uint32_t edge = 0, edge_length = 0;  // of the edge that leads here: a part of edges_
    int rule = -1;
    std::vector<std::pair<char, uint32_t>> next;  // first character of an edge → where it leads; sorted
  };
  static constexpr uint32_t kNowhere = 0;  // nothing leads back to the root
  uint32_t Step(uint32_t node, char c) const;
  std::string_view EdgeOf(const Node& node) const {
    return std::string_view(edges_).substr(node.edge, node.edge_length);
  }
  // A new node in the middle of the edge that leads to `node`, `length` characters along it.
  void Split(uint32_t node, uint32_t length);

  std::vector<Node> nodes_;  // [0] is the root
  std::string edges_;
};

}  // namespace cadastre

#endif  // CADASTRE_SYMBOLIZER_RULE_MATCHER_H_
